"""Inspect AI."""
