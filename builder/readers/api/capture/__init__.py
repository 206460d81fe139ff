"""What readers of captures share: envelopes, dialects, threads of requests."""
