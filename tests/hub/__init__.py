"""A stand-in for the Hub on loopback: what the released client asks for, and faults on demand."""
