"""Variants of a dataset for trainers, each verified after it is written.

`variants` says what a row of each is and what a trainer renders from it; `write` writes them and
loads them again; `trainers` has a configuration for each trainer that reads the variant. Rules and
traps: trainers.md.
"""
