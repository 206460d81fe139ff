"""The parts of scripts/bench.py: its input, what a command costs, what is measured, the tables."""
