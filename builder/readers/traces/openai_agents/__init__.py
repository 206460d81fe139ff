"""The OpenAI Agents SDK: spans of its traces, and its sessions in SQLite."""
