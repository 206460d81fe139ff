"""OpenHands, V0 and V1."""
