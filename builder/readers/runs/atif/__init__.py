"""ATIF (Harbor)."""
