"""Implements the functions of the API that read logs and make datasets of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from builder.api.checked import checked
from builder.api.progress import OnMessage, OnProgress, ReadingProgress, ignore, phases_of
from builder.given import (
    InputsLike,
    MappingLike,
    Row,
    SystemLike,
    ToolsLike,
    given_config,
    given_dataset,
    given_inputs,
    given_mapping,
    given_options,
    given_rows,
    given_system,
    given_tools,
    lines_of,
    scratch,
)
from builder.paths import UserPath
from builder.problem import Problem, UsageError, nearest

if TYPE_CHECKING:
    from builder.card.result import BuildResult
    from builder.config import Config
    from builder.conversation import Conversation, Event
    from builder.normalize.normalise import Normalised
    from builder.normalize.options import NormalizeOptions
    from builder.options import Preset
    from builder.sample import Dialogue, Sample
    from builder.sources.source import Source

EngineName = Literal["local", "ray"]
"""The engines that can run a build."""


@checked
def find_sources(path: str | Path) -> Iterator[Source | Problem]:
    """Yields the sources at a path, glob, store URL or `hf://` dataset, in a fixed order.

    A source that cannot be opened is a Problem. Raises UsageError if nothing is there.
    """
    from builder.readers.discovery import find_sources as find

    return find(os.fspath(path))


@checked
def recognise(source: Source | str | Path | Sequence[Row]) -> dict[str, str]:
    """Returns the readers that recognise a source, the one at a path or rows: {name: reason}.

    One name recognises it; several make it ambiguous. Raises UsageError if nothing is at the path,
    several sources are, or it cannot be opened.
    """
    from builder.readers import recognise as claims_of
    from builder.sources.listing import local_copy
    from builder.sources.source import Source

    if isinstance(source, Source):
        return claims_of(source)
    with given_dataset(source, "source", mapped=True) as place:
        sources = list(islice(find_sources(place), 2))
        if len(sources) > 1:
            raise UsageError(f"{place!r}: several sources: take each from find_sources")
        (item,) = sources
        if isinstance(item, Problem):
            raise UsageError(f"{item.where}: {item.detail}")
        with local_copy(item) as copy:
            return claims_of(copy)


@checked
def normalise(
    conversation: Conversation,
    options: NormalizeOptions | Mapping[str, Any] | None = None,
    *,
    tokenizer: str | Path = "qwen3",
) -> Normalised:
    """Converts a conversation to a dialogue that fits the template, or rejects it.

    `tokenizer` (qwen3, a folder or a Hub id) is that of the model to train. Raises UsageError for
    an unknown option or tokenizer.

        normalised = normalise(conversation, {"reasoning": "keep"})
    """
    from builder.normalize.normalise import normalise as normalised
    from builder.normalize.options import NormalizeOptions
    from builder.qwen3.reference import EMBEDDED
    from builder.qwen3.tokenizer import target_for

    chosen = given_options(NormalizeOptions, options)
    if os.fspath(tokenizer) != EMBEDDED:
        target = target_for(os.fspath(tokenizer))
        chosen = replace(chosen, added_tokens=target.added_tokens, style=target.style)
    return normalised(conversation, chosen)


@checked
def flatten(dialogue: Dialogue | Normalised, *, tokenizer: str | Path = "qwen3") -> Sample:
    """Returns the training sample of a dialogue: roles and texts as they are written to data/.

    `tokenizer` is that for which it was normalised. Raises UsageError for a rejected conversation,
    for anything but a dialogue or a result of `normalise`, and for an unknown tokenizer.

        sample = flatten(normalise(conversation))
    """
    from builder.qwen3.flat import flatten as flattened
    from builder.qwen3.reference import EMBEDDED
    from builder.qwen3.templates import SPECIFIED
    from builder.qwen3.tokenizer import target_for
    from builder.sample import Dialogue

    assert isinstance(dialogue, Dialogue)
    name = os.fspath(tokenizer)
    return flattened(dialogue, SPECIFIED if name == EMBEDDED else target_for(name).style)


@checked
def read(
    source: Source | str | Path | Sequence[Row],
    format: str | None = None,  # noqa: A002 - as the option
) -> Iterator[Event]:
    """Yields the conversations of a source, and the outcome of its other records.

    A path, glob or URL means all sources there; records in memory are one source. `format` names a
    reader; None chooses the reader that recognises the source. Of several sources, one that no
    reader recognises, or several do, is a Problem. Raises UsageError if it is the only one, or if
    there is no such reader.
    """
    from builder.sources.source import Source

    if isinstance(source, Source):
        return _read(source, format)
    if isinstance(source, str | os.PathLike):
        return _read_all(list(find_sources(source)), format)
    rows = given_rows(source, "source", mapped=format is not None)
    return _read(Source("records", data=b"".join(lines_of(rows))), format)


def _read_all(sources: Sequence[Source | Problem], name: str | None) -> Iterator[Event]:
    from builder.sources.listing import local_copy

    for item in sources:
        if isinstance(item, Problem):
            yield item
            continue
        with local_copy(item) as copy:
            try:
                events = _read(copy, name)
            except _Unread as error:
                if len(sources) == 1:
                    raise
                yield Problem(error.code, item.name, error.reason)
                continue
            yield from events


class _Unread(UsageError):
    """Raised for a source that not exactly one reader recognises."""

    def __init__(self, name: str, claims: Sequence[str]) -> None:
        self.code = "ambiguous" if claims else "unrecognised"
        self.reason = f"claimed by {', '.join(claims)}" if claims else "no reader recognises it"
        text = f"source {name!r}: {self.reason}; name a format: {{format}}"
        super().__init__(text, format="NAME")


def _read(source: Source, name: str | None) -> Iterator[Event]:
    from builder.readers import read_events, readers, recognise

    known = readers()
    named = name is not None
    if name is None:
        claims = recognise(source)
        if len(claims) != 1:
            raise _Unread(source.name, [*claims])
        name = next(iter(claims))
    elif name not in known:
        raise UsageError(f"format {name!r}: no such reader{nearest(name, known)}")
    return read_events(known[name], source, named=named)


@checked
def build_dataset(
    inputs: InputsLike,
    out: str | Path,
    *,
    config: Config | Mapping[str, Any] | str | Path | None = None,
    preset: Preset | None = None,
    model: str | None = None,
    tokenizer: str | Path | None = None,
    chat_template: str | Path | None = None,
    format: str | None = None,  # noqa: A002 - as the option
    mapping: MappingLike | None = None,
    tools: ToolsLike = None,
    system: SystemLike = None,
    workers: int | None = 1,
    engine: EngineName = "local",
    fresh: bool = False,
    on_progress: OnProgress = ignore,
    on_message: OnMessage = ignore,
) -> BuildResult:
    """Builds a dataset folder from logs, as `builder build` does, and returns the outcome.

    `inputs` replace those of `config`, unless there are none ([]); they keep what it says of their
    paths. `config` overrides the keys of `preset`, which overrides those that follow from `model`,
    the one to train (as `--for`). `tokenizer` (qwen3, a folder or a Hub id) and
    `chat_template` (a file or its sha256) override `config`, and for all inputs so do `format` (the
    name of a reader), `mapping` (a file, a dict or what `suggest_mapping` returns), `tools` (files
    with definitions; or a list of them, or what `capture_definitions` returns) and `system` (files
    with the system prompt; or its message, a dict, or as for tools): a `str` is always the name of
    a file. `out` may be an address in a store. `workers` None: one for each CPU, or those of
    Ray. More than one starts processes; only on Windows a script then needs its
    `if __name__ == "__main__":`. An interrupted run is resumed, unless `fresh`. `on_progress` gets
    a `Progress`, `on_message` the texts of warnings before the work begins. Without a sample,
    `reasons` of the result says why. Raises UsageError (input, configuration, tokenizer, output
    folder), LedgerFault (a bug of ours).

        built = build_dataset("logs", "out", model="Qwen3-4B-Instruct-2507", preset="sft")
    """
    from builder.build.build import build
    from builder.config import override
    from builder.output.folder import RemoteOutput
    from builder.sources.store import is_url, local_path

    place = local_path(os.fspath(out))
    remote = RemoteOutput(place) if is_url(place) else None
    reading = ReadingProgress(on_progress)
    paths = {"verify.tokenizer": tokenizer, "verify.chat_template": chat_template}
    keys = {key: UserPath(os.fspath(path)) for key, path in paths.items() if path is not None}
    changed = given_config(config, preset, {"verify.model": model, **keys})
    with (
        given_inputs(inputs, changed, mapped=bool(format or mapping)) as named,
        scratch() as folder,
        _engine(engine, workers) as running,
    ):
        chosen = override(
            named,
            format=format,
            mapping=None if mapping is None else given_mapping(mapping, built=True),
            tools=given_tools(tools, folder),
            system=given_system(system, folder),
        )
        if remote is not None:
            remote = replace(remote, shares=running.name == "ray")
            remote.check()
        built = build(
            chosen,
            remote.local_folder if remote is not None else Path(place),
            engine=running,
            fresh=fresh,
            progress=reading.begin,
            phase=phases_of(on_progress),
            warn=on_message,
            remote=remote,
        )
    built.folder = place
    return built


@contextlib.contextmanager
def _engine(name: EngineName, workers: int | None) -> Iterator[Any]:
    from builder.build.engine import local
    from builder.parallel.pool import default_workers

    if name == "ray":
        from builder.build.ray_engine import on_ray

        with on_ray(workers) as running:
            yield running
    else:
        yield local(default_workers() if workers is None else workers)


@checked
def merge_datasets(
    datasets: Sequence[str | Path | BuildResult],
    out: str | Path,
    *,
    config: Config | Mapping[str, Any] | str | Path | None = None,
    workers: int = 1,
    on_progress: OnProgress = ignore,
) -> BuildResult:
    """Combines built folders into one (docs/select.md), without reading logs again.

    Raises UsageError if a folder was not made by build, if their options differ, or if `out` cannot
    be written.
    """
    from builder.build.merge import merge
    from builder.sources.store import local_copy, local_output

    names = [os.fspath(item) for item in datasets]
    if not names:
        raise UsageError("datasets: must name the folders to merge")
    chosen, phase = given_config(config, for_merge=True), phases_of(on_progress)
    with contextlib.ExitStack() as stack:
        places = [stack.enter_context(local_copy(name)) for name in names]
        place = stack.enter_context(local_output(out))
        merged = merge(places, chosen, place, workers=workers, phase=phase)
    merged.folder = os.fspath(out)
    return merged
