"""What a restoration uses where nothing else is said. Light: the command line shows these in --help."""

from __future__ import annotations

METHOD = "ddnm"
PLUGINS = ("leader",)
STEPS = 100
PRIOR = "embedded"
SEED = 0
ESTIMATOR = "auto"
