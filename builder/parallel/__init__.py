"""Runs work in several processes of this machine."""
