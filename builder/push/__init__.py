"""A built dataset onto the Hugging Face Hub: gates, what would change, upload, reading back."""
