"""Implements the converter that `datasets` calls for agent traces, in place of Teich's."""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import wraps
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.api.checked import checked
from builder.problem import Problem

if TYPE_CHECKING:
    from builder.conversation import Conversation
    from builder.normalize.normalise import Normalised
    from builder.sample import Dialogue
    from builder.sources.source import Source


@checked
def convert_traces_to_training_data(
    traces: str | Path, *, skip_invalid_lines: bool = False
) -> list[dict[str, Any]]:
    """Returns a row for each conversation of the sessions at a path, as `datasets` asks for them.

    A row has `prompt`, `messages` (OpenAI's form, each result with the name of its tool), `tools`
    (of the log; those that it lacks are inferred from the calls, which `metadata.tools_source`
    says) and `metadata`. A session that cannot be read, or
    has a line that is no JSON (which `datasets` decodes later), gives no row but a warning, so that
    a load goes on; `skip_invalid_lines` gives the rows of it.
    """
    from builder.api.logs import find_sources

    rows: list[dict[str, Any]] = []
    for source in find_sources(traces):
        if isinstance(source, Problem):
            _warn(source.where, source.detail)
        elif not skip_invalid_lines and (line := _bad_line(source)):
            _warn(source.name, f"line {line} is no JSON: the session is left out")
        else:
            rows += _rows_of(source)
    return rows


def use_in_datasets() -> None:
    """Makes `datasets.load_dataset` convert agent traces by our readers, in this process.

    `datasets` (5.2) imports its converter from a module `teich`, which need not be installed, and
    cannot cast a file without rows. Raises ImportError if `datasets` is not installed.
    """
    import datasets
    from datasets.packaged_modules.json.json import Json

    cast, generate = (
        getattr(one, "__wrapped__", one) for one in (Json._cast_table, Json._generate_tables)
    )

    @wraps(cast)
    def cast_some(self: Json, table: Any, **options: Any) -> Any:
        return cast(self, table, **options) if len(table) else table

    @wraps(generate)
    def generate_some(self: Json, *args: Any, **options: Any) -> Iterator[tuple[Any, Any]]:
        return ((key, one) for key, one in generate(self, *args, **options) if len(one))

    Json._cast_table, Json._generate_tables = cast_some, generate_some
    sys.modules["teich"] = sys.modules[__name__]
    datasets.config.TEICH_AVAILABLE = True


def _warn(where: str, detail: str) -> None:
    warnings.warn(f"{where}: {detail}", stacklevel=4)


def _bad_line(source: Source) -> int:
    """Returns the number of a line that `datasets` cannot decode after the converter; 0: none."""
    if source.path is None:
        return 0
    for number, line in enumerate(source.path.read_text("utf-8", "replace").splitlines(), 1):
        try:
            json.loads(line)
        except ValueError:
            return number
    return 0


def _rows_of(source: Source) -> Iterator[dict[str, Any]]:
    from builder.api.logs import normalise
    from builder.conversation import Conversation
    from builder.readers import read_events, readers, recognise

    claims = [*recognise(source)]
    if len(claims) != 1:
        _warn(source.name, "no reader recognises it" if not claims else f"claimed by {claims}")
        return
    name, lost = claims[0], Counter[str]()
    options = {"reasoning": "keep", "untrained_turns": "context"}
    for event in read_events(readers()[name], source):
        if isinstance(event, Problem):
            lost[event.code] += event.records
        elif isinstance(event, Conversation):
            found = normalise(event, options)
            if found.dialogue is None:
                lost[found.problem.code if found.problem is not None else "none"] += 1
            else:
                yield _row(name, source, event, found, found.dialogue)
    if lost:
        _warn(source.name, f"left out: {', '.join(f'{code} {n}' for code, n in lost.items())}")


def _row(
    name: str, source: Source, conversation: Conversation, found: Normalised, dialogue: Dialogue
) -> dict[str, Any]:
    messages = [*_messages(dialogue)]
    asked = [message["content"] for message in messages if message["role"] == "user"]
    metadata = {
        "source_file": Path(source.name).name,
        "session_id": conversation.id,
        "record": conversation.record,
        "trace_type": name,
        "model": conversation.model,
        "cli_version": conversation.version,
        "turn_count": len(asked),
        "tool_call_count": len(found.kept),
        "calls_left_out": dict(Counter(found.dropped.values())),
        "tools_source": found.tools_source,
        "missing": sorted({code for one in found.contexts for code in one.missing}),
        "changes": dict(found.changes),
    }
    return {
        "prompt": asked[0],
        "messages": messages,
        "tools": [*dialogue.tools],
        "metadata": metadata,
    }


def _messages(dialogue: Dialogue) -> Iterator[dict[str, Any]]:
    """Yields the messages; calls and results are numbered, and answers have weights if needed."""
    from builder.qwen3.flat import structured

    numbers = count()
    answers = iter([turn for turn in dialogue.turns if turn.role == "assistant"])
    has_context = any(turn.role == "assistant" and not turn.trained for turn in dialogue.turns)
    open_calls: Iterator[tuple[str, str]] = iter(())
    for plain in structured(dialogue):
        message = dict(plain)
        if message["role"] == "assistant":
            made = [(f"call_{next(numbers)}", call) for call in message.get("tool_calls", ())]
            open_calls = iter([(name, call["function"]["name"]) for name, call in made])
            calls = [{"id": name, **call} for name, call in made]
            message |= {"tool_calls": calls} if calls else {}
            trained = next(answers).trained
            message |= {"weight": int(trained)} if has_context else {}
        elif message["role"] == "tool":
            call_id, tool = next(open_calls)
            message = {"role": "tool", "tool_call_id": call_id, "name": tool} | message
        yield message
