"""Defects: specks, scratches, and what tells a drawing from a photograph."""
