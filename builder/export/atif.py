"""Exports conversations as ATIF trajectories, for viewing.

They are not for training, since the format cannot represent everything. Each file is read back by
this project's own reader; a sample is left out if its file does not give the same messages.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from builder.conversation import MISSING, Context, Conversation, Json
from builder.dataset.rejects import read_rejects
from builder.dataset.rows import DatasetRow
from builder.export.outcome import Exported
from builder.export.variants import call_ids
from builder.export.write import earlier_export, is_export, proven_rows
from builder.jsonio import dumps
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions
from builder.output.folder import folder_aside, put_in_place
from builder.output.manifest import Manifest
from builder.paths import expand_home
from builder.qwen3.flat import flatten, to_dialogue
from builder.readers import readers
from builder.sample import Dialogue, Sample
from builder.sources.source import Source
from builder.verify.verifier import Verifier

ATIF = "atif"
_READ_BACK = "read-back"
"""Code of samples whose file, read back, gives other messages."""


def export_atif(dataset: str, out: Path, verifier: Verifier, *, fresh: bool = False) -> Exported:
    """Writes a file for each proven sample; `fresh` replaces an earlier export.

    Raises UsageError.
    """
    exported = Exported(ATIF)
    place = expand_home(dataset)
    ledger = Manifest.of(place).ledger
    records = ledger.to_json()["records"] if ledger is not None else None
    left_out: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for reject in read_rejects(place):
        left_out[reject.source][reject.code] += 1
    with folder_aside(
        out, replaceable=lambda path: fresh and is_export(path), hint=earlier_export
    ) as scratch:
        folder = scratch / "out"
        folder.mkdir()
        for row, sample, _ in proven_rows(dataset, verifier, exported):
            path = folder / f"{exported.rows:06d}.json"
            report = completeness(row, records, left_out[row.meta.source])
            path.write_bytes(trajectory(row, sample, to_dialogue(sample), report))
            if _read_again(path) == (sample.messages, sample.definitions):
                exported.rows += 1
                exported.equal += 1
            else:
                path.unlink()
                exported.left_out[_READ_BACK] += 1
        if exported.rows:
            put_in_place(folder, out)
    return exported


def completeness(row: DatasetRow, records: Json, left_out: Mapping[str, int]) -> dict[str, Json]:
    """Returns what a trajectory has of its log: what was not used, what the model saw besides.

    `records` are those of the whole dataset, `left_out` is what else its log file has, by code.
    """
    meta = row.meta
    context = meta.context or Context("")
    return {
        "source": {"file": meta.source, "record": meta.record, "left_out": dict(left_out)},
        "dataset_records": records,
        "context": context.level or None,
        "model_saw_but_log_lacks": {code: MISSING.get(code, code) for code in context.missing},
        "changes": dict(meta.changes),
        "agent_version": meta.agent_version or None,
    }


def trajectory(
    row: DatasetRow, sample: Sample, dialogue: Dialogue, report: dict[str, Json]
) -> bytes:
    """Returns a trajectory (docs/formats/atif.md), with results in the step of their call.

    A trained turn is one answer of the model (`llm_call_count`); of the others this is not known.
    """
    steps: list[dict[str, Json]] = []
    ids: list[str] = []
    answers = 0
    for number, turn in enumerate(dialogue.turns):
        if turn.role == "tool":
            results: list[Json] = [
                {"source_call_id": name, "content": text}
                for name, text in zip(ids, turn.responses, strict=True)
            ]
            steps[-1]["observation"] = {"results": results}
            continue
        step: dict[str, Json] = {
            "step_id": len(steps) + 1,
            "source": "agent" if turn.role == "assistant" else turn.role,
            "message": turn.content,
        }
        if turn.role == "assistant":
            if answers in sample.targets:
                step["llm_call_count"] = 1
            answers += 1
        if turn.reasoning:
            step["reasoning_content"] = turn.reasoning
        if turn.calls:
            ids = call_ids(number, turn)
            step["tool_calls"] = [
                {"tool_call_id": name, "function_name": call.name, "arguments": call.arguments}
                for name, call in zip(ids, turn.calls, strict=True)
            ]
        steps.append(step)
    agent: dict[str, Json] = {
        "name": row.meta.format or "unknown",
        "version": row.meta.agent_version or "unknown",
        "tool_definitions": list(sample.tools),
    }
    match row.meta.every_model:
        case [str(name)]:
            agent["model_name"] = name
        case [_, _, *_] as names:
            agent["extra"] = {"models": [*names]}
    written: Json = {
        "schema_version": "ATIF-v1.8",
        "session_id": row.meta.conversation or sample.id,
        "trajectory_id": sample.id,
        "agent": agent,
        "steps": list(steps),
        "extra": {"completeness": report},
    }
    return dumps(written).encode("utf-8") + b"\n"


def _read_again(path: Path) -> tuple[object, ...] | None:
    """Returns the messages and tools that our reader of ATIF finds in a file."""
    options = NormalizeOptions(reasoning="keep", control_tokens="neutralise")
    for event in readers()[ATIF].read(Source(path.name, path)):
        if isinstance(event, Conversation):
            # The last turn is a target even if it has calls, which have no results.
            dialogue = normalise(replace(event, complete=True), options).dialogue
            if dialogue is not None:
                again = flatten(dialogue)
                return again.messages, again.definitions
    return None
