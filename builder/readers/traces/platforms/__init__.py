"""Observability platforms: Langfuse, LangSmith."""
