"""One-line bugs put in on trial: do the tests notice? `python -m tools.mutants`, or `make mutants`."""
