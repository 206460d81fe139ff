"""Reader of Kimi CLI sessions."""
