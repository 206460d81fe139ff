"""Readers of chat applications: their stores and the exports that users download."""
