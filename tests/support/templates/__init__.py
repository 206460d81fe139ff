"""Chat templates: embedded, small, and of published packages."""
