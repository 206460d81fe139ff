"""Texts of random words, for near-duplicates."""

import random
import string


def words(seed, count=60):
    draw = random.Random(seed)
    return " ".join("".join(draw.choices(string.ascii_lowercase, k=5)) for _ in range(count))
