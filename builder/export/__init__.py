"""Writes variants of a dataset for trainers, each verified after it is written."""
