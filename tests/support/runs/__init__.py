"""Complete runs: builds, commands and processes."""
