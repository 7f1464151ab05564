"""Whole folders: restores every picture of a tree exactly once, even across crashes."""
