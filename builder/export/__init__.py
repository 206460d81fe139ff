"""Writes variants of a dataset for trainers, each verified after it is written.

`variants` defines the rows of each variant and the text that a trainer renders from them; `write`
writes them and loads them again; `trainers` has a configuration for each trainer that reads the
variant. Rules and pitfalls: trainers.md.
"""
