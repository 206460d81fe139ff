"""Builds a dataset: plans chunks of input, converts them, selects samples, writes the folder."""
