"""Google Antigravity."""
