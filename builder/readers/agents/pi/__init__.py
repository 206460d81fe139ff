"""Pi and OpenClaw."""
