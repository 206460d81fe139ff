"""Reads Braintrust: the rows of project logs and experiments, brought to the shape of LangSmith.

Only spans of type llm log what the model saw (docs/formats/braintrust.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Event, Ignored, Json
from builder.readers import declared
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, unknown_code
from builder.readers.toolkit.rows import collected
from builder.readers.traces.langsmith import Runs
from builder.readers.traces.parts import decoded
from builder.sources.source import Record, Source

_PEEKED = 20


def _is_row(value: dict[str, Json]) -> bool:
    return bool(as_str(value.get("root_span_id"))) and "span_attributes" in value


def _recognise(source: Source) -> str | None:
    """Claims rows of spans."""
    found = any(map(_is_row, source.peek.objects[:_PEEKED]))
    return "spans with root_span_id and span_attributes" if found else None


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of the source's traces and the outcome of its other rows."""
    return collected(source.records(), _Collector(source))


class _Collector(Runs):
    types = frozenset({
        "llm", "score", "function", "eval", "task", "tool", "automation", "facet", "preprocessor",
        "classifier", "review",
    })  # fmt: skip

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._rows: set[str] = set()

    def take(self, record: Record) -> Iterator[Event]:
        """Reads one row; pages of the API repeat rows in older versions, the newest first."""
        row = as_dict(record.value)
        name = as_str(row.get("id"))
        if not _is_row(row):
            yield Ignored(unknown_code(row.get("type", "record")))
        elif name and name in self._rows:
            yield Ignored("older_version")
        else:
            self._rows.add(name)
            scores = as_dict(decoded(row.get("scores"))).items()
            facts = self.trace(as_str(row.get("root_span_id")))
            facts.add_scores([{"name": key, "value": value} for key, value in scores])
            yield from self.run(record.where, _as_run(row), "", "")


def _as_run(row: dict[str, Json]) -> dict[str, Json]:
    metadata = as_dict(decoded(row.get("metadata")))
    params = {**metadata, **as_dict(decoded(metadata.get("model_parameters")))}
    request = decoded(row.get("input"))
    if isinstance(request, list):
        body = {**params, "messages": request}
        last = as_dict(request[-1]) if request else {}
        if last.get("role") == "system":  # its wrapper of Anthropic appends the system prompt
            body |= {"messages": request[:-1], "system": last.get("content")}
        request = body
    attributes = as_dict(decoded(row.get("span_attributes")))
    error = row.get("error")
    started = as_dict(decoded(row.get("metrics"))).get("start")
    return {
        "id": row.get("span_id"),
        "trace_id": row.get("root_span_id"),
        "parent_run_id": next(iter(as_list(decoded(row.get("span_parents")))), None),
        "run_type": as_str(attributes.get("type")) or "task",
        "start_time": f"{started:020.6f}" if isinstance(started, float) else row.get("created"),
        "inputs": request,
        "outputs": row.get("output"),
        "error": error if isinstance(error, str | None) else "error",
        "tags": row.get("tags"),
        "extra": {"metadata": metadata, "invocation_params": params},
    }


READER = declared("braintrust", recognise=_recognise, read=read)
