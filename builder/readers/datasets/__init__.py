"""Readers of published datasets."""
