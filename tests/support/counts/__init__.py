"""Counts over the raw JSON of real logs, without our readers: the oracle of their tests."""
