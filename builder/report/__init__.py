"""Makes the HTML report, one self-contained page."""
