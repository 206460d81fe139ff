"""Gives the tables of words that the toolkit reads by: tables.toml."""

import tomllib
from importlib.resources import files

_TABLES = tomllib.loads((files(__package__) / "tables.toml").read_text(encoding="utf-8"))


def listed(table: str, key: str) -> tuple[str, ...]:
    """Returns the words under a key of a table, in order."""
    return tuple(_TABLES[table][key].split())


def words(table: str, key: str) -> frozenset[str]:
    """Returns the words under a key of a table."""
    return frozenset(listed(table, key))


def by_word(table: str) -> dict[str, str]:
    """Returns {word: key} of a table."""
    return {word: key for key, listed in _TABLES[table].items() for word in listed.split()}
