"""Replaces what must not be written: secrets (`builder.secrets`) and personal data."""
