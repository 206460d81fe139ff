"""Reads datasets of any origin: their files, rows and meta lines. No other room reads rows."""
