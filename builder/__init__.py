"""Raw agent logs in, proven Qwen3 fine-tuning data out."""
