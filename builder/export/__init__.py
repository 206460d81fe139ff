"""Writes variants of a dataset for trainers, each verified after it is written.

`variants` defines the rows of each variant and the text that a trainer renders from them; `write`
writes the rows and loads them again. The configurations come from `builder.trainers`. Their rules:
docs/export.md.
"""
