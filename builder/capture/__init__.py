"""Capturing: passes an agent's requests to its provider and keeps what was sent and answered."""
