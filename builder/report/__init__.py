"""The report that people look at, one self-contained page, and its pieces for the viewer."""
