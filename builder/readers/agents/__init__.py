"""Readers of logs that coding agents keep on disk."""
