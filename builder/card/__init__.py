"""Writes the dataset card, the README.md of a built folder.

`card` assembles it; `front` makes the front matter, `training` explains how each trainer loads the
dataset, `markdown` escapes text from logs.
"""
