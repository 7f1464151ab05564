"""The defaults of a restoration. Light: the command line shows these in --help."""

QUALITY = "standard"
LOOK = "natural"
METHOD = None
"""Chosen by quality and look; so are the plug-ins and the steps."""
PLUGINS = None
STEPS = None
METHOD_PLUGINS = ("leader",)
METHOD_STEPS = 100
"""What a method that is asked for gets, as in the papers."""
PRIOR = "embedded"
DTYPE = "auto"
"""Of the network of a prior by name: half precision where that is fast and uncertainty allows it."""
SEED = 0
ESTIMATOR = "auto"
