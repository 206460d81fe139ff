"""The sources of a reader's case, and what becomes of them: events, samples, rendered text.

Sources are the files under `input/`, and a database for each `.sql`.

A database is kept as the text that makes it, so that it can be reviewed: `store.sql` becomes the
sqlite file `store.db`.
"""

import shutil
import sqlite3
from pathlib import Path

from builder.conversation import Conversation
from builder.normalize import NormalizeOptions, normalise
from builder.qwen3.flatten import flatten
from builder.readers.discovery import find_sources


def case_sources(case: Path, scratch: Path):
    """The sources of the case in the folder `case`, its databases made in `scratch`."""
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
    """The samples that a build makes of a case, as the tokenizer's chat template renders them.

    `events_by_source` is {name of a source: the events of its reader}. A conversation that gives
    no sample is the line that says why.
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
        return f"rejected: {problem.code}: {problem.detail} ({problem.where})"
    changes = ", ".join(f"{code} {count}" for code, count in normalised.changes.items())
    head = f"tools {normalised.tools_source}" + (f"; changes: {changes}" if changes else "")
    return f"{head}\n{target.render_sample(flatten(normalised.dialogue))}"
