"""Finds secrets in text, by tables of rules; imports nothing of the rest of the house."""
