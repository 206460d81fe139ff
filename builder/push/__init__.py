"""Pushes a built dataset to the Hugging Face Hub: gates, preview, upload, read-back."""
