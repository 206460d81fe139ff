"""Observability platforms: Langfuse and LangSmith."""
