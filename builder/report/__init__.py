"""Makes the HTML report, one self-contained page, and the pages of the viewer."""
