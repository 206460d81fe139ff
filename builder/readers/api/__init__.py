"""Readers of captured API requests and responses."""
