"""Describes trainers: what they read, how long it may be, which tokens they train."""
