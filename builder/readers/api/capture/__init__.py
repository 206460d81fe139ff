"""Shared by the readers of captures: envelopes, dialects, threads of requests."""
