"""LangChain and LangGraph."""
