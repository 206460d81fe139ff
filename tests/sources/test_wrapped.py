"""Tests of the records of a JSON document that has them in a list inside one object."""

import json
from typing import Any

import pytest

from builder.conversation import Conversation, Event, Text
from builder.problem import Problem
from builder.readers import read_events, readers, recognise
from builder.sources.source import Source


def _row(answer: str) -> dict[str, Any]:
    turns = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": answer}]
    return {"messages": turns}


def _read(document: Any, form: str | None = None) -> list[Event]:
    source = Source("log.json", data=json.dumps(document).encode())
    if form is None:
        (form,) = recognise(source)
    events = list(read_events(readers()[form], source, named=True))
    assert source.records_read == sum(event.records for event in events)
    return events


def _answers(events: list[Event]) -> list[tuple[str, str]]:
    found = []
    for event in events:
        if isinstance(event, Conversation):
            (text,) = event.messages[-1].parts
            assert isinstance(text, Text)
            found.append((event.record, text.text))
    return found


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"samples": [_row("A."), _row("B.")]}, "samples"),
        ({"version": 2, "data": {"items": [_row("A."), _row("B.")]}}, "data.items"),
        ({"tags": ["x"], "none": [], "rows": [_row("A."), _row("B.")]}, "rows"),
    ],
)
@pytest.mark.parametrize("form", [None, "openai-chat"])
def test_reads_the_only_list_of_objects(
    document: dict[str, Any], place: str, form: str | None
) -> None:
    answers = [(f"{place}[0]", "A."), (f"{place}[1]", "B.")]
    assert _answers(_read(document, form)) == answers


def test_reads_an_answer_of_the_hubs_viewer() -> None:
    cut = _row("The keeper of the lighthouse said that")
    rows = [
        {"row_idx": 0, "row": _row("A."), "truncated_cells": []},
        {"row_idx": 1, "row": cut, "truncated_cells": ["messages"]},
    ]
    events = _read({"features": [{"name": "messages"}], "rows": rows, "partial": False})
    assert _answers(events) == [("rows[0]", "A.")]
    assert [event.where for event in events if isinstance(event, Problem)] == ["rows[1]"]
    assert not any(event.changes for event in events if isinstance(event, Conversation))


def test_counts_text_beside_the_list() -> None:
    notes = "Answer in the tone of a lighthouse keeper."
    (conversation,) = _read({"house_style": notes, "samples": [_row("A.")]})
    assert isinstance(conversation, Conversation)
    assert conversation.changes == {"unknown_key:house_style": 1}


@pytest.mark.parametrize(
    "document",
    [
        {"turns": [{"speaker": "A", "content": "Hi."}, {"speaker": "B", "content": "Hello."}]},
        {"one": [_row("A.")], "two": [_row("B.")]},
        {"samples": [_row("A."), "B."]},
        {"samples": []},
    ],
)
def test_leaves_other_documents_alone(document: dict[str, Any]) -> None:
    source = Source("log.json", data=json.dumps(document).encode())
    assert recognise(source) == {}
    assert source.peek.records == (document,)
