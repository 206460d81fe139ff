"""Normalises a Conversation to a Dialogue; `normalise` has the steps, in order."""
