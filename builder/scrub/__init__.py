"""Finds and replaces what must not be written: secrets and personal data."""
