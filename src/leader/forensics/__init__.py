"""What a picture tells of its own past: compression, noise, blur, defects, size."""
