"""Size: which kernel made a thumbnail, and whether a picture was enlarged."""
