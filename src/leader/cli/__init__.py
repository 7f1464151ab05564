"""The command line: parses, calls, prints. Heavy imports happen inside commands, so --help is fast."""

from leader.cli.app import app, main

__all__ = ["app", "main"]
