"""Writes the dataset card: the README.md of `build`.

`card` puts it together; `front` makes the front matter, `training` explains how each trainer loads
the dataset, `markdown` prevents text from logs from acting as markup.
"""
