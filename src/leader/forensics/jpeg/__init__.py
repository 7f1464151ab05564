"""JPEG: its blocks in pixels, its steps, its coefficients, the error it made."""
