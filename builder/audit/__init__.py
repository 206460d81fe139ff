"""Analyses a dataset: its contents, what leaked into it, and what is wrong with it."""
