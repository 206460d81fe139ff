"""Reads the histories of Aider."""
