"""The sources of a reader's case: the files under `input/`, and a database for each `.sql`.

A database is kept as the text that makes it, so that it can be reviewed: `store.sql` becomes the
sqlite file `store.db`.
"""

import shutil
import sqlite3
from pathlib import Path

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
