"""Reads OpenAI Codex CLI rollouts: one JSONL file of events for each session, from 2025 to 0.169.

All content is read from `response_item` lines (in the oldest layout: bare items without a
`payload`). `event_msg` lines repeat it for the screen and are used only for facts that the items
lack: what the user typed, aborted turns, rollbacks. Source: docs/formats/codex.md.

- A turn is the model's output up to the first tool output. Where the program wrote a line before
  every request (`turn_context` up to 0.77, `state` rows in the oldest layout), calls of one
  response are one turn even if each was logged with its own output.
- The log contains only the client's own tool definitions, and no system prompt up to 0.7x. From
  0.157 on the logged prompt is a template of the prompt that was sent (`system_template`).
- A compaction begins a new segment, a conversation of its own: the history that replaced the old
  one, and what followed. Answers in that history are not targets.
- The history that a rollback discards becomes a conversation with the problem `rewound`.
- An interrupted answer stays in later requests. It is not a target unless it called a tool or its
  end is logged. A call without an output is sent again with "aborted".
- The provider runs web searches and image generation inside the response, and the log lacks their
  results: the turn is `server_tool`. Encrypted summaries are `encrypted_context`.
- A fork since 0.171 holds only its own lines: the parent's, if its file is there, are the history,
  and its answers are repeats. Without it, `history` is missing.
- Files of older forks and subagents replay the history of their parent. Random call ids from the
  provider serve as keys, so that a replayed call is recognised as the same call.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event, Json
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.codex import items
from builder.readers.agents.codex.forks import base_of, parent_lines
from builder.readers.agents.codex.lines import KINDS, RolloutLine, interleaved, line_of
from builder.readers.agents.codex.rollout import NAME, Rollout
from builder.readers.homes import Home
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.sources.source import Source


def recognise(source: Source) -> str | None:
    """Claims lines of a known type with a payload, or the oldest layout's header and rows."""
    header = bare = False
    for value in source.peek.objects:
        kind = as_str(value.get("type"))
        if kind in KINDS and isinstance(value.get("payload"), dict):
            return f"{kind} lines with a payload"
        header = header or value.get("record_type") == "state" or _is_old_header(value)
        bare = bare or ("payload" not in value and kind in items.ITEMS)
    return "bare response items after the header of an old rollout" if header and bare else None


def _is_old_header(value: dict[str, Json]) -> bool:
    return "type" not in value and {"id", "timestamp", "instructions"} <= value.keys()


def read(source: Source) -> Iterator[Event]:
    """Yields the segments of the session and the histories that were rolled back."""
    lines: list[RolloutLine] = []
    lost: set[int] = set()  # positions before which a line cannot be read
    base: tuple[str, int] | None = None
    for record in source.json_lines():
        line = record if isinstance(record, Problem) else line_of(record)
        if isinstance(line, Problem):
            lost.add(len(lines))
            yield line
        else:
            if not lines and not isinstance(record, Problem):
                base = base_of(as_dict(record.value))
            lines.append(line)
    before = (parent_lines(source, base) or []) if base else []
    rollout = Rollout(source.name, [*before, *lines])
    if before:
        rollout.inherit(before)
    joining = interleaved(lines)
    for at, line in enumerate(lines):
        if at in lost:
            rollout.lose()
        yield from rollout.take(line, joins=at in joining)
    yield from rollout.end()


READER = Reader(
    name=NAME,
    summary="OpenAI Codex CLI rollouts (JSONL): lines with type and payload, or the old bare items",
    evidence=("source", "files"),
    recognise=recognise,
    is_agent=True,
    checked="0.171.0",
    homes=(
        Home("Codex", "${CODEX_HOME:-~/.codex}/sessions"),
        Home("Codex", "${CODEX_HOME:-~/.codex}/archived_sessions"),
    ),
    read=read,
)
