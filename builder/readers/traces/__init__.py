"""Readers of observability traces."""
