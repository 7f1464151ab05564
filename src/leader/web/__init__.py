"""The page: drop a picture in, watch the restoration, and download the result with its trust map.

It is a thin layer over restoration, trust and forensics. Nothing leaves the machine.
"""
