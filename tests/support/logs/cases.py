"""The sources of a reader's case, and their results: events, samples, rendered text.

Sources are the files under `input/`, and a database for each `.sql`.

A database is stored as the SQL that creates it, so that it can be reviewed: `store.sql` becomes the
SQLite file `store.db`.
"""

import shutil
import sqlite3
from pathlib import Path

from builder.conversation import Conversation
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions
from builder.qwen3.flat import flatten
from builder.readers.discovery import find_sources


def case_sources(case: Path, scratch: Path):
    """Returns the sources of the case in the folder `case`; creates its databases in `scratch`."""
    folder = case / "input"
    if any(folder.rglob("*.sql")):
        shutil.copytree(folder, scratch, dirs_exist_ok=True)
        for script in sorted(scratch.rglob("*.sql")):
            with sqlite3.connect(script.with_suffix(".db")) as store:
                store.executescript(script.read_text(encoding="utf-8"))
            store.close()
            script.unlink()
        folder = scratch
    return list(find_sources(str(folder)))


def rendered(events_by_source, target):
    """Returns a build's samples of a case, rendered by the tokenizer's chat template.

    `events_by_source` is {name of a source: the events of its reader}. A conversation without a
    sample is a line with the reason.
    """
    pieces = [
        f"##### {name} · {event.record}\n{_rendered(event, target)}\n"
        for name, events in events_by_source.items()
        for event in events
        if isinstance(event, Conversation)
    ]
    return "".join(pieces)


def _rendered(conversation, target):
    normalised = normalise(conversation, NormalizeOptions())
    if normalised.dialogue is None:
        problem = normalised.problem
        assert problem is not None
        return f"rejected: {problem.code}: {problem.detail} ({problem.where})"
    changes = ", ".join(f"{code} {count}" for code, count in normalised.changes.items())
    head = f"tools {normalised.tools_source}" + (f"; changes: {changes}" if changes else "")
    return f"{head}\n{target.render_sample(flatten(normalised.dialogue))}"
