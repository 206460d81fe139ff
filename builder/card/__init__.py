"""Writes the dataset card, the README.md of a built folder."""
