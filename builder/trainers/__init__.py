"""What is known of each trainer: masks, lengths, configuration."""
