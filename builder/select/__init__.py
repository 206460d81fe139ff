"""Selects samples and assigns them to splits."""
