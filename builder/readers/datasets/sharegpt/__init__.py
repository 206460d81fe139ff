"""ShareGPT rows."""
