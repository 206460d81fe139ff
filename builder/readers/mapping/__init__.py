"""Logs of one's own: a mapping file names where the parts of a conversation stand."""
