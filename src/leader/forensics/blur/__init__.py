"""Blur: which kernel made it, how wide it is, how far a kernel can be doubted."""
