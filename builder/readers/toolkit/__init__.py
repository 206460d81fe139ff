"""Helpers for authors of readers."""
