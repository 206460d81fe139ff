"""Kiro: its CLI, its IDE, and Amazon Q Developer's CLI."""
