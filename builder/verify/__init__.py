"""Proves samples and datasets against the chat template."""
