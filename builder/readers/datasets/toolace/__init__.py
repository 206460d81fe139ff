"""ToolACE rows."""
