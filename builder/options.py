"""Defines how rooms declare their options, each once.

An option type is a frozen dataclass. Its fields are the keys of a YAML section, their types define
the valid values (`Literal` for a choice, `float` for a share from 0 to 1, `int` for a whole number
from 1), and their defaults apply. The configuration, the manifest and the command line are derived
from it. Field metadata expresses what a type cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field
from typing import Any, NewType

Metadata = Mapping[str, Any]

Number = NewType("Number", float)
"""The type of any finite number."""

Scalar = NewType("Scalar", object)
"""The type of any text, number, true, false or null."""

INLINE: Metadata = {"inline": True}
"""The keys of this option type appear in the section that contains the field."""

SUPPLIED: Metadata = {"supplied": True}
"""The program fills in the value at run time: it is not a key."""


def at_least(minimum: int) -> Metadata:
    """Returns the metadata of a whole number with a smallest value other than 1."""
    return {"minimum": minimum}


def named(key: str) -> Metadata:
    """Returns the metadata of a field whose key is not a valid Python name."""
    return {"key": key}


def key_of(item: Field[Any]) -> str:
    """Returns the key of the field."""
    return str(item.metadata.get("key", item.name))


def minimum_of(item: Field[Any]) -> int:
    """Returns the smallest value of a whole number."""
    return int(item.metadata.get("minimum", 1))


def is_inline(item: Field[Any]) -> bool:
    """Returns whether the fields of its option type are the keys."""
    return bool(item.metadata.get("inline"))


def is_key(item: Field[Any]) -> bool:
    """Returns whether a user may set the field."""
    return not item.metadata.get("supplied")
