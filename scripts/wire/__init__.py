"""Runs real agents against a scripted model and compares requests, logs and samples."""
