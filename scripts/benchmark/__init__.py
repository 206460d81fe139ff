"""Modules of scripts/bench.py: input, costs of commands, measurements and tables."""
