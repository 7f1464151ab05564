"""The page: a picture is dropped in, watched while it comes back, and taken away with how far to trust it.

It is thin: what it does lives in restoration, trust and diagnosis. Nothing leaves the machine.
"""
