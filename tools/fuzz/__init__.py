"""Files and command lines nobody should write, thousands of them: `python -m tools.fuzz`, or `make fuzz`."""
