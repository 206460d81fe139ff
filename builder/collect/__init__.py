"""Collecting: copies logs that agents delete or rewrite into a folder that keeps them."""
