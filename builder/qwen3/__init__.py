"""Implements the Qwen3 tool-calling format: flatten, render, parse, and the tokenizer."""
