"""Reads VCR cassettes in YAML, one recorded interaction at a time, up to the first fault.

Values are built from the parser's events: libyaml's composer recurses without a limit, and a few
lines of aliases can expand without end. Plain scalars are converted as PyYAML and Psych do.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from builder.conversation import Json
from builder.jsonio import MAX_DEPTH
from builder.problem import Problem

if TYPE_CHECKING:
    import yaml

LIST_KEYS = ("interactions", "http_interactions")
"""Keys of the list: in vcrpy and go-vcr, and in VCR for Ruby."""

_MAX_GROWTH = 8 << 20
"""Maximum number of characters and nodes that aliases may add to one interaction."""

_LOOKS = re.compile(rb"^(?:http_)?interactions:[ \t]*\r?$", re.MULTILINE)
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,4000})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?")
_CONSTANTS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip


_BINARY = ("tag:yaml.org,2002:binary", "!binary")
"""Tags of Base64: in PyYAML, and in Ruby's Psych, which writes it with one exclamation mark."""

_NESTING = "maximum nesting depth"
"""A part of the message of newer versions of libyaml, which refuse more than 1,000 levels."""


def looks_like_cassette(head: bytes) -> bool:
    """Returns whether a file that begins with `head` looks like a cassette in YAML."""
    return head.lstrip()[:1] not in (b"{", b"[") and _LOOKS.search(head) is not None


def interactions(stream: BinaryIO | bytes, limit: int) -> Iterator[Json | Problem]:
    """Yields the interactions of a cassette in order, up to the first Problem.

    `limit` is the maximum number of characters of an interaction (`too_large`). Other codes:
    `bad_yaml`, `too_deep`, `number`. A stream may raise one of `stream.STREAM_ERRORS`.
    """
    import yaml  # noqa: PLC0415 - costs 20 ms, and most files are not cassettes

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    building = _Building(limit)
    count = 0
    try:
        for event in yaml.parse(stream, Loader=loader):
            fault = building.take(event)
            if fault is not None:
                yield Problem(fault[0], f"interaction {count}", fault[1])
                return
            while building.finished:
                count += 1
                yield building.finished.pop(0)
    except (yaml.YAMLError, UnicodeError) as error:
        detail = _description(error)
        code = "too_deep" if _NESTING in detail else "bad_yaml"
        yield Problem(code, f"interaction {count}", detail)


def _description(error: Exception) -> str:
    """Returns the fault and its line, without the file name that the error's own text contains."""
    mark = getattr(error, "problem_mark", None)
    fault = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    return f"{fault} in line {mark.line + 1}" if mark is not None else str(fault)


@dataclass(slots=True)
class _Open:
    """A collection that is still open. `key`: the key of a mapping whose value comes next."""

    value: dict[str, Json] | list[Json]
    anchor: str | None
    key: str | None = None
    size: int = 1

    @property
    def needs_key(self) -> bool:
        """Returns whether the next scalar is the key of a mapping."""
        return isinstance(self.value, dict) and self.key is None


class _Building:
    """Builds the interactions of a document from its events."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open: list[_Open] = []
        self.anchors: dict[str, tuple[Json, int]] = {}
        self.grown = 0
        self.finished: list[Json] = []

    def take(self, event: yaml.Event) -> tuple[str, str] | None:
        """Adds one event; returns the code and detail of a fault, if there is one."""
        match kind := type(event).__name__:
            case "MappingStartEvent" | "SequenceStartEvent":
                value: dict[str, Json] | list[Json] = {} if kind == "MappingStartEvent" else []
                self.open.append(_Open(value, getattr(event, "anchor", None)))
                if len(self.open) > MAX_DEPTH:
                    return "too_deep", f"nested deeper than {MAX_DEPTH}"
            case "MappingEndEvent" | "SequenceEndEvent":
                done = self.open.pop()
                return self._add(done.value, done.size, done.anchor)
            case "ScalarEvent":
                return self._scalar(event)
            case "AliasEvent":
                return self._alias(getattr(event, "anchor", None))
        return None

    def _scalar(self, event: yaml.Event) -> tuple[str, str] | None:
        text = str(getattr(event, "value", ""))
        tag = getattr(event, "tag", None)
        plain = getattr(event, "implicit", (False, False))[0]
        value: Json = text
        is_key = bool(self.open) and self.open[-1].needs_key
        if tag in _BINARY:
            value = {"base64_string": text}
            with suppress(binascii.Error, ValueError):  # a key that an older Psych writes as bytes
                text = base64.b64decode(text).decode("utf-8") if is_key else text
        elif tag is None and plain:
            try:
                value = _plain(text)
            except OverflowError:
                return "number", f"number out of range: {text[:40]}"
        if is_key:
            value = text
        return self._add(value, len(text) + 1, getattr(event, "anchor", None))

    def _alias(self, anchor: str | None) -> tuple[str, str] | None:
        if anchor not in self.anchors:
            return "bad_yaml", f"alias *{str(anchor)[:40]} does not refer to a complete node"
        value, size = self.anchors[anchor]
        self.grown += size
        if self.grown > _MAX_GROWTH:
            return "too_large", "aliases expand too far"
        return self._add(value, size, None)

    def _add(self, value: Json, size: int, anchor: str | None) -> tuple[str, str] | None:
        if anchor is not None:
            self.anchors[anchor] = (value, size)
        if not self.open:
            return None  # the document itself, whose interactions were already yielded
        into = self.open[-1]
        if max(size, into.size) > self.limit:
            return "too_large", f"more than {self.limit} characters"
        if isinstance(into.value, list):
            if len(self.open) == 2 and self.open[0].key in LIST_KEYS:  # the interactions
                self.finished.append(value)
                self.grown = 0
                return None
            into.value.append(value)
        elif into.key is None:
            into.key = value if isinstance(value, str) else "?"
        else:
            into.value[into.key] = value
            into.key = None
        into.size += size
        return None


def _plain(text: str) -> Json:
    """Returns the value of a plain scalar. Raises OverflowError for numbers beyond a double."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise OverflowError
        return number
    return text
