"""Chooses samples and assigns them to splits."""
