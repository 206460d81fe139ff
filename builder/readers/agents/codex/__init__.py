"""OpenAI Codex CLI."""
