"""Noise: its level, its colour, how it grows with brightness."""
