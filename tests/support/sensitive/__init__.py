"""Invented secrets and personal data, texts that contain them, and texts that look similar."""
