"""GitHub Copilot: the CLI and the chat of VS Code."""
