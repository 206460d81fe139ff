"""The dataset card that `build` writes to README.md.

`card` puts it together; `front` makes the front matter, `training` says how each trainer loads the
dataset, `markdown` keeps text of logs from being anything but text.
"""
