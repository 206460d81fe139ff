"""What is in a dataset, what leaked into it, and what is wrong with it."""
