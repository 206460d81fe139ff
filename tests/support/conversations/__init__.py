"""Conversations in memory: written in few words, or drawn by hypothesis."""
