"""A file of JSON that was written from a table is read like the file before.

Arrow gives all structs of a column the same keys, and null where a row has no value. Of each case
of a reader, the records go through Arrow; the messages must stay the same, apart from nulls in
arguments, which normalising removes. What Arrow cannot hold (values of several types at one place)
is left out.

EXCEPTIONS names the cases for which the law does not hold, each with the reason.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest
from support.logs.described import describe
from support.places import CASES

from builder.conversation import Conversation
from builder.readers import readers
from builder.sources.sniff import ROW, Padding, padding_of, without_padding
from builder.sources.source import Source
from builder.testing import read_counted

DIGESTS = frozenset({"key"})
"""Fields that may be made from the bytes of a record."""

EXCEPTIONS = {
    "bedrock-converse/use-types": "calls of a request and of a response are padded differently",
    "gemini-api/batch": "`response: null` means that none was received",
    "kiro/stand-in": "the stand-in for arguments is known by its keys",
    "swe-agent/parallel_and_unanswered": "the order of keys in a call that is no call",
    "zed/thread-json": "the object for the arguments gets the keys of another tool's",
}


def loaded(path: Path) -> tuple[list, bool] | None:
    """Returns (records, whether they are lines) of a file; None if it is not JSON."""
    text = path.read_text(encoding="utf-8")
    try:
        value = json.loads(text)
    except ValueError:
        pass
    else:
        return (value, False) if isinstance(value, list) else ([value], True)
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()], True
    except ValueError:
        return None


def through_arrow(path: Path) -> tuple[bytes, bytes] | None:
    """Returns a file as it is and as Arrow gives it back; None if Arrow cannot hold it."""
    found = loaded(path)
    if found is None or not all(isinstance(record, dict) for record in found[0]):
        return None
    records, lines = found
    names = {name: None for record in records for name in record}
    try:
        table = pyarrow.Table.from_pylist([{**names, **record} for record in records])
        back = table.to_pylist()
        texts = [
            [json.dumps(record) for record in values] if lines else [json.dumps(values)]
            for values in (records, back)
        ]
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        return None
    if back == records or not same(back, records):
        return None
    return tuple("".join(f"{text}\n" for text in side).encode() for side in texts)


def same(value: object, before: object) -> bool:
    """Returns whether a value differs from what it was by nulls only."""
    if isinstance(value, dict) and isinstance(before, dict):
        return all(
            same(item, before.get(key)) if item is not None else before.get(key) is None
            for key, item in value.items()
        )
    if isinstance(value, list) and isinstance(before, list):
        return len(value) == len(before) and all(map(same, value, before))
    return type(value) is type(before) and value == before


def stripped(value: object) -> object:
    """Returns a value without nulls and digests."""
    if isinstance(value, list):
        return [stripped(item) for item in value]
    if isinstance(value, dict):
        known = (key for key, item in value.items() if item is not None and key not in DIGESTS)
        return {key: stripped(value[key]) for key in known}
    return value


def messages(reader, name: str, data: bytes) -> list:
    """Returns the messages of the conversations, without nulls."""
    events = read_counted(reader, Source(name, data=data))
    return [
        stripped(describe(event)["messages"]) for event in events if isinstance(event, Conversation)
    ]


def padded_files(name: str) -> Iterator[tuple[str, str, bytes, bytes]]:
    """Yields (case, name of the file, its bytes, the padded bytes) of a reader's cases."""
    for case in sorted(CASES.glob(f"{name}/*")):
        for path in sorted((case / "input").rglob("*")):
            if path.suffix in (".json", ".jsonl", ".traj") and (sides := through_arrow(path)):
                yield case.name, path.name, *sides


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(readers()))
def test_rows_from_a_table_have_the_same_messages(name):
    reader = readers()[name]
    differing = [
        case
        for case, file, before, after in padded_files(name)
        if messages(reader, file, before) != messages(reader, file, after)
    ]
    assert differing == [case for case in differing if f"{name}/{case}" in EXCEPTIONS]


USER = {"role": "user", "content": "Rain?", "tool_calls": None}
ASKED = {"role": "assistant", "content": None, "tool_calls": [{"name": "sky", "arguments": {}}]}


def calling(**arguments: object) -> dict:
    """Returns a message with a call of the tool `kind`."""
    call = {"name": arguments.pop("tool"), "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


@pytest.mark.parametrize(
    ("rows", "padding"),
    [
        ([{"messages": [USER, ASKED]}], Padding(frozenset({"messages"}))),
        ([{"messages": [USER]}, {"messages": [ASKED]}], Padding(frozenset({"messages"}))),
        ([{"messages": [USER, {"role": "assistant", "content": "Yes."}]}], Padding()),
        ([{"messages": [USER, USER]}], Padding()),
        (
            [{"messages": [USER, calling(tool="a", x=1, y=None), calling(tool="b", x=None, y=2)]}],
            Padding(frozenset({"messages"}), calls=True),
        ),
        (
            [{"messages": [USER, calling(tool="a", x=1, y=None), calling(tool="a", x=1, y=2)]}],
            Padding(frozenset({"messages"})),
        ),
        ([{"request": {}, "response": None}, {"request": None, "response": {}}], Padding()),
        ([{"a": 1, "b": None, "c": 1, "d": None}, {"a": None, "b": 1, "c": None, "d": 1}],
         Padding(frozenset({ROW}))),
        ([["no row"], None, 3], Padding()),
        ([], Padding()),
    ],
)  # fmt: skip
def test_padding_is_known_by_structs_whose_keys_are_null_in_some(rows, padding):
    assert padding_of(rows) == padding


def test_nulls_of_arguments_and_parents_stay():
    row = {
        "parentId": None,
        "other": None,
        "messages": [{"name": "f", "arguments": {"x": None}, "id": None}],
        "result": {"x": None},
    }
    assert without_padding(row, frozenset({"messages"})) == {
        "parentId": None,
        "messages": [{"name": "f", "arguments": {"x": None}}],
        "result": {"x": None},
    }
    assert without_padding(row, frozenset()) is row
