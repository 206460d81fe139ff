"""Text under a key that no reader knows is never lost silently, in databases and YAML either.

The law of test_planted_text, for SQLite and YAML: in each JSON cell of a database, and in each
object of a YAML file and of the JSON inside its texts. A new column of a table with text of the
conversation is looked for too.

planted_in_stores.json names where the law does not hold, by reader, each with the reason.
"""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.logs.cases import case_sources
from support.logs.planted import KEY, SENTENCE, holders, is_found, spoken, texts
from support.places import CASES

from builder.readers import readers
from builder.sources.source import Source
from builder.testing import read_counted

KNOWN = Path(__file__).parent / "planted_in_stores.json"


class Text(dict):
    """An object that a file holds as JSON text."""


def cells(store: sqlite3.Connection) -> Iterator[tuple[str, str, int, object]]:
    """Yields (table, column, number of the row, value) of all cells."""
    names = store.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    for (table,) in names.fetchall():
        try:
            rows = store.execute(f'SELECT rowid, * FROM "{table}"')
        except sqlite3.OperationalError:  # a table without row numbers
            continue
        columns = [column for column, *_ in rows.description][1:]
        for number, *row in rows.fetchall():
            for column, value in zip(columns, row, strict=True):
                yield table, column, number, value


def parsed(value: object) -> object:
    """Returns the object or list of a JSON text or JSON bytes; None for other values."""
    try:
        found = json.loads(value) if isinstance(value, str | bytes) else None
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None


def lost_in_database(reader, path: Path) -> Iterator[str]:
    """Yields the places of a database whose new key or column is lost."""

    def read(statement: str = "", *values: object) -> list:
        changed = path.with_name("changed.db")
        shutil.copy(path, changed)
        with sqlite3.connect(changed) as store:
            for one in statement.split(";"):
                store.execute(one, values if "?" in one else ())
        store.close()
        return list(read_counted(reader, Source(path.name, changed)))

    before = read()
    used = spoken(before)
    with sqlite3.connect(path) as store:
        found = list(cells(store))
    store.close()
    done: set[str] = set()
    for table, column, number, cell in found:
        value = parsed(cell)
        if texts(value if value is not None else cell) & used and f"{table}.*" not in done:
            done.add(f"{table}.*")
            default = f"ALTER TABLE \"{table}\" ADD COLUMN {KEY} TEXT DEFAULT '{SENTENCE}'"
            if not is_found(read(default), before):
                yield f"{table}.*"
        for kind, item in holders(value, used, f"{table}.{column}"):
            if kind in done:
                continue
            done.add(kind)
            item[KEY] = SENTENCE
            text: str | bytes = json.dumps(value)
            text = text.encode() if isinstance(cell, bytes) else text
            update = f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = {number}'
            if not is_found(read(update, text), before):
                yield kind
            del item[KEY]


def opened(value: object) -> object:
    """Returns a value with the objects that are JSON text as `Text`."""
    if isinstance(value, str):
        found = parsed(value)
        return Text(opened(found)) if isinstance(found, dict) else value
    if isinstance(value, dict):
        return {key: opened(item) for key, item in value.items()}
    return [opened(item) for item in value] if isinstance(value, list) else value


def closed(value: object) -> object:
    """Undoes `opened`."""
    if isinstance(value, dict):
        inner = {key: closed(item) for key, item in value.items()}
        return json.dumps(inner) if isinstance(value, Text) else inner
    return [closed(item) for item in value] if isinstance(value, list) else value


def lost_in_yaml(reader, path: Path) -> Iterator[str]:
    """Yields the kinds of objects of a YAML file whose new key is lost."""
    data = path.read_bytes()
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(data)):
            return  # it may expand without end
        value = opened(yaml.safe_load(data))
    except yaml.YAMLError:
        return

    def read() -> list:
        data = yaml.safe_dump(closed(value), sort_keys=False).encode()
        return list(read_counted(reader, Source(path.name, data=data)))

    before = read()
    done: set[str] = set()
    for kind, item in list(holders(value, spoken(before))):
        if kind in done:
            continue
        done.add(kind)
        item[KEY] = SENTENCE
        if not is_found(read(), before):
            yield kind
        del item[KEY]


def lost_kinds(name: str, scratch: Path) -> list[str]:
    """Returns where a reader loses text in the databases and YAML files of its cases."""
    found: set[str] = set()
    for case in sorted(CASES.glob(f"{name}/*")):
        for source in case_sources(case, scratch / case.name):
            for path in [member.path for member in source.members] or [source.path]:
                if path is not None and path.suffix == ".db":
                    found.update(lost_in_database(readers()[name], path))
                elif path is not None and path.suffix in (".yaml", ".yml"):
                    found.update(lost_in_yaml(readers()[name], path))
    return sorted(found)


NAMES = sorted(
    {path.parts[-4] for kind in ("sql", "y*ml") for path in CASES.glob(f"*/*/input/*.{kind}")}
)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_text_under_an_unknown_key_of_a_store_is_not_lost(name, tmp_path):
    known = json.loads(KNOWN.read_text(encoding="utf-8"))
    assert lost_kinds(name, tmp_path) == sorted(known.get(name, {}))
