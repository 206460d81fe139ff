"""A stand-in for the Hub on loopback: the released client's endpoints, and faults on demand."""
