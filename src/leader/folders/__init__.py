"""Whole folders: every picture of a tree restored once, whatever happens on the way."""
