"""Default settings of training, for Python and for the command line. Light to import."""

PARTS = ("main", "main_head", "expert", "expert_head", "share")
"""The parts of a pyramid that can be trained."""

RATE = 4e-5
EXPERT_RATE = 2e-5
SHARE_RATE = 1e-3
HEAD_FACTOR = 5.0
MAIN_BATCH = 8
EXPERT_BATCH = 6
SEED = 0
DEVICE = "cpu"
HOURS = 3.0
FIT_MINUTES = 5.0
TRUST_MINUTES = 15.0
ADAPT_MINUTES = 60.0
TRUST_RUNS = 600
FEWEST_RUNS = 12
"""The least number of runs for a meaningful referee and its factors."""
