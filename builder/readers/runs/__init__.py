"""Readers of evaluation and RL harnesses."""
