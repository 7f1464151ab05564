"""Benchmarks: experiments as data, one stored record per run, tables and figures made from the records."""
