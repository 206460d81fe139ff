"""Logs large enough for several chunks."""

import random
import string

from builder.parallel import pool
from support.logs.chats import row


def text(seed, size):
    """Returns text of the given length, different for each seed."""
    draw = random.Random(seed)
    found = ""
    while len(found) < size:
        found += "".join(draw.choices(string.ascii_lowercase, k=draw.randint(2, 9))) + " "
    return found[:size]


def large_logs(folder):
    """Writes twelve files large enough to start a pool, by spaces, which are fast to read."""
    folder.mkdir()
    for name in range(12):
        texts = [text(f"{name}.{number}", 800) for number in range(6)]
        rows = [
            row(content, 1 + at % 3).replace("{", "{" + " " * 60_000, 1)
            for at, content in enumerate(texts)
        ]
        (folder / f"{name:02d}.jsonl").write_text("".join(rows))
    assert sum(path.stat().st_size for path in folder.iterdir()) > pool.LITTLE_BYTES
    return folder
