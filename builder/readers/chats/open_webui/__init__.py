"""Reads Open WebUI chats."""
