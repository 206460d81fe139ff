"""Readers of logs that coding agents keep on the disk."""
