"""Random bugs planted on trial: do the tests notice? `python -m tools.mutants`, or `make mutants`."""
