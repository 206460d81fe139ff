"""Datasets of any origin: their files, rows and meta lines. Rows are walked here only."""
