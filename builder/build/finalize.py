"""Selects samples from the results of all tasks, counts the outcomes, and writes the files.

One pass over the results makes a table of digests and counts; the texts stay in the result files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from sys import intern
from types import MappingProxyType
from typing import Any, cast

from builder.build.preferences import Matched, match
from builder.build.results import ChunkResult
from builder.card.result import BuildResult, Origin
from builder.codes import DUPLICATE, SELECTED, option_of
from builder.config.sections import Config
from builder.conversation import LEVELS, Json
from builder.dataset.files import SPLITS
from builder.dataset.forms import read_sample
from builder.dataset.meta import SampleMeta
from builder.dataset.rejects import REJECTS, Reject
from builder.dataset.review import Review
from builder.jsonio import loads
from builder.ledger import CallOutcomes, Ledger
from builder.output.folder import SplitWriter, Writer
from builder.output.rows import sample_features
from builder.problem import Problem
from builder.qwen3.flat import to_dialogue, written_style
from builder.qwen3.templates import SPECIFIED, Style
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str
from builder.sample import Sample
from builder.select.choice import NEAR_DUPLICATE, Choice, ChoiceOptions, choose
from builder.select.conditions import TOOLS, SelectOptions
from builder.select.table import ConversationEntry, ConversationRow, SampleEntry, SampleRow, Table

# -- finds the samples of a build that nearly equal one of another session -------------------------


def near_duplicates(
    samples: Callable[[], Iterable[tuple[bytes, bytes]]], table: Table, chosen: Sequence[bool]
) -> Mapping[int, int]:
    """Returns {near duplicate: the sample that is kept in its place} among the chosen ones.

    `samples` yields the line and the meta line of each sample of the table.
    """
    from builder.audit.duplicates import compared_text, near_repeats  # noqa: PLC0415 - numpy

    def texts() -> Iterator[str]:
        for number, (line, meta) in enumerate(samples()):
            if chosen[number]:
                items = as_dicts(as_dict(loads(line)).get("messages"))
                unit = SampleMeta.read(as_dict(loads(meta))).unit
                messages = [(as_str(item, "role"), as_str(item, "content")) for item in items]
                trained = [
                    item.get("role") == "assistant" and item.get("weight") != 0 for item in items
                ]
                yield compared_text(messages, unit, trained)

    numbers = [number for number, is_chosen in enumerate(chosen) if is_chosen]
    sessions = [row.entry.session for row in table for _ in row.samples]
    found = near_repeats(texts(), [sessions[number] for number in numbers])
    return {numbers[again]: numbers[kept] for again, kept in found.items()}


_LOADER = "loader"
"""Code of samples that `datasets` does not give back as written."""

_UNKNOWN = "unknown"
"""Placeholder for a model or a license that is not named."""


def finalize(
    results: Sequence[ChunkResult],
    unreadable: Sequence[Problem],
    config: Config,
    writer: Writer,
    review: Review | None = None,
    changed: Mapping[str, str] = MappingProxyType({}),
    *,
    style: Style = SPECIFIED,
) -> BuildResult:
    """Writes data/, meta/ and rejects.jsonl and counts every outcome. Raises LedgerFault.

    `review` are the decisions in the file named by `select.review`. `changed` maps the ids of
    samples that are left out, since `datasets` does not give them back, to what it changes. `style`
    is that of the target's template.
    """
    built = BuildResult(writer, is_beside=style.beside, review=review)
    in_pieces = config.normalize.unit != "conversation" or config.limits.too_long != "reject"
    options = ChoiceOptions(in_pieces, config.shares, config.select, config.split)
    table = list(_table(results, options, review, built))
    drops_near = config.audit.options.near_duplicates == "drop"
    choice = choose(
        table,
        options,
        partial(near_duplicates, lambda: _samples(results), table) if drops_near else None,
    )
    if changed:
        codes, splits = list(choice.codes), list(choice.splits)
        for number, (_, meta) in enumerate(_samples(results)):
            if codes[number] is None and _meta(meta).id in changed:
                codes[number], splits[number] = _LOADER, None
        choice = replace(choice, codes=codes, splits=splits)
    _count_records(built, results, unreadable)
    _count_conversations(built, table, choice)
    built.ledger.check()
    matched = match(table, choice, _samples(results), style)
    _count_pairs(built, table, choice, matched)
    ids = _write(results, choice, built, config, matched)
    searched: dict[str, bytearray] = {}
    of_samples = chain.from_iterable(
        repeat(row.entry.without_secrets, len(row.samples)) for row in table
    )
    for split, without_secrets in zip(choice.splits, of_samples, strict=True):
        if split is not None:
            searched.setdefault(split, bytearray()).append(without_secrets)
    built.without_secrets = searched
    built.rejects += sum(code is not None for code in choice.codes)
    left_out = _left_out(results, choice, ids, changed)
    writer.write(REJECTS, chain(_rejects(results, unreadable), left_out))
    return built


def _table(
    results: Sequence[ChunkResult],
    options: ChoiceOptions,
    review: Review | None,
    built: BuildResult,
) -> Iterator[ConversationRow]:
    """Yields a row for each conversation; reads the samples only if the options need them.

    Counts in `built` how many samples meet each condition.
    """
    needs_samples = bool(options.shares or options.select.fields or review)
    for source, result in enumerate(results):
        samples = result.samples() if needs_samples else iter(())
        for entry in result.entries():
            values = [
                _values(line, meta, options.select)
                for _, (line, meta) in zip(entry.samples, samples, strict=False)
            ]
            if review is not None:
                built.reviewed |= review.decided(values)
            if options.select.where:
                built.judged += len(values)
                for item in values:
                    built.unmet.update(options.select.unmet(item))
            yield _row(entry, source, result, values, options, review)


def _values(line: bytes, meta: bytes, select: SelectOptions) -> dict[str, Json]:
    """Returns the values that conditions may name: the sample's meta line and its tools."""
    values: dict[str, Json] = _decoded(meta)
    if TOOLS in select.fields:
        sample = read_sample(_decoded(line))
        assert isinstance(sample, Sample), "it was verified"
        turns = to_dialogue(sample, written_style(sample)).turns
        names = {call.name for turn in turns for call in turn.calls}
        values[TOOLS] = [*sorted(names)]
    return values


def _row(
    entry: ConversationEntry,
    source: int,
    result: ChunkResult,
    samples: Sequence[dict[str, Json]],
    options: ChoiceOptions,
    review: Review | None,
) -> ConversationRow:
    """Returns the row of a conversation; `samples` are the values of its samples, or empty."""
    select = options.select
    last = samples[-1] if samples else {}
    rows = (
        [
            _sample_row(item, values, select, review)
            for item, values in zip(entry.samples, samples, strict=True)
        ]
        if samples
        else map(SampleRow, entry.samples)
    )
    return ConversationRow(
        entry,
        tuple(rows),
        source=source,
        weight=result.weight,
        format=entry.format or result.summary.format or _UNKNOWN,
        group=intern(select.group(last)),
    )


def _sample_row(
    entry: SampleEntry, values: dict[str, Json], select: SelectOptions, review: Review | None
) -> SampleRow:
    meta = SampleMeta.read(values)
    return SampleRow(
        entry,
        pattern=intern(meta.pattern),
        refusal=select.refusal(values) if select.where else None,
        review=review.refusal(meta.id, unreviewed=select.unreviewed == "keep")
        if review is not None
        else None,
    )


def _count_records(
    built: BuildResult, results: Sequence[ChunkResult], unreadable: Sequence[Problem]
) -> None:
    ledger = built.ledger
    for result in results:
        ledger.add(result.summary.ledger)
        built.pairs_left_out.update(result.summary.pairs_left_out)
        built.bugs += result.summary.bugs
        built.rejects += result.summary.rejects
    for problem in unreadable:
        ledger.read += 1
        ledger.rejected[problem.code] += 1
        built.rejects += 1


def _count_conversations(built: BuildResult, table: Table, choice: Choice) -> None:
    """Counts conversations and calls for the ledger, and origins and contexts for the card."""
    ledger = built.ledger
    calls = CallOutcomes()
    source = 0
    for row, codes in choice.by_conversation(table):
        if row.source != source:
            calls.end_source()
            source = row.source
        ledger.samples_found += len(codes)
        ledger.samples_left_out.update(code for code in codes if code is not None)
        if None in codes:
            _count_written(built, row, codes)
            outcomes = _calls_of_written(row, codes)
        else:
            code = _count_unused(ledger, row, codes)
            outcomes = ((key, own or code) for key, own in row.entry.calls)
        calls.add(outcomes)
    calls.count(ledger)


def _count_written(built: BuildResult, row: ConversationRow, codes: Sequence[str | None]) -> None:
    entries = row.entry.samples
    written = [item for item, code in zip(entries, codes, strict=True) if code is None]
    built.ledger.built += 1
    built.ledger.samples += len(written)
    if row.entry.cut is not None:
        built.ledger.cut[row.entry.cut] += 1
    for item in written:
        built.tokens += item.tokens
        counted = zip(LEVELS, item.levels, strict=True)
        built.context_levels.update({level: count for level, count in counted if count})
        built.context_missing.update(dict(item.missing))
        built.is_weighted |= item.is_weighted
        if item.recorded:
            built.tokens_recorded[item.recorded] += 1
        models = ", ".join(name or _UNKNOWN for name in item.models)
        built.origins[Origin(row.format, models, row.entry.license or _UNKNOWN)] += 1
    built.tools_sources[row.entry.tools_source] += len(written)


def _calls_of_written(
    row: ConversationRow, codes: Sequence[str | None]
) -> Iterator[tuple[bytes, str | None]]:
    """Yields for each call its key and the code for which it is dropped, or None if it is kept.

    A call that is only in samples that were not written has the code of the last of these.
    """
    if not any(codes):
        yield from row.entry.calls
        return
    samples = [
        (range(*item.calls), code) for item, code in zip(row.entry.samples, codes, strict=True)
    ]
    for ordinal, (key, own) in enumerate(row.entry.calls):
        of_call = [code for calls, code in samples if ordinal in calls]
        is_kept = own is not None or not of_call or None in of_call
        yield key, own if is_kept else of_call[-1]


def _count_unused(ledger: Ledger, row: ConversationRow, codes: Sequence[str | None]) -> str:
    """Counts a conversation without written samples; returns the code for its calls."""
    reasons = [code for code in codes if code not in (None, DUPLICATE)]
    if not codes and row.entry.code != DUPLICATE:
        _reject(ledger, str(row.entry.code), is_recoverable=row.entry.is_recoverable)
        return str(row.entry.code)
    if not reasons:
        ledger.duplicates += 1
        return DUPLICATE
    code = NEAR_DUPLICATE if NEAR_DUPLICATE in reasons else str(reasons[0])
    _reject(ledger, code, is_recoverable=option_of(code) is not None)
    return code


def _reject(ledger: Ledger, code: str, *, is_recoverable: bool) -> None:
    ledger.conversations_rejected[code] += 1
    ledger.recoverable[code] += is_recoverable


def _count_pairs(built: BuildResult, table: Table, choice: Choice, matched: Matched) -> None:
    """Counts the preference pairs of the written samples; counts the others by code."""
    built.pairs_left_out.update(matched.left_out)
    built.pairs += sum(len(pairs) for pairs in matched.pairs.values())
    for row, codes in choice.by_conversation(table):
        built.pairs_left_out.update(dict(row.entry.left_out))
        for item, code in zip(row.entry.samples, codes, strict=True):
            if code is None:
                built.pairs += item.pairs
            elif item.pairs:
                built.pairs_left_out["not_selected"] += item.pairs


def _write(
    results: Sequence[ChunkResult],
    choice: Choice,
    built: BuildResult,
    config: Config,
    matched: Matched,
) -> dict[int, str]:
    """Writes the selected samples; returns {number: id} of those kept in place of duplicates."""
    features = sample_features(weighted=built.is_weighted, beside=built.is_beside)
    writers: dict[str, SplitWriter] = {}
    ids: dict[int, str] = dict.fromkeys(choice.near.values(), "")
    for number, (line, meta) in enumerate(_samples(results)):
        split = choice.splits[number]
        if split is None:
            continue
        if number in ids:
            ids[number] = _meta(meta).id
        if split not in writers:
            writers[split] = SplitWriter(built.writer, split, config.output.formats, features)
        if number in matched.pairs:
            known = _meta(meta)
            pairs = (*known.preferences, *matched.pairs[number])
            meta = replace(known, preferences=pairs).line + b"\n"  # noqa: PLW2901 - completed
        writers[split].add(line, meta)
    built.data_files = {name: writers[name].close() for name in SPLITS if name in writers}
    return ids


def _rejects(results: Sequence[ChunkResult], unreadable: Sequence[Problem]) -> Iterator[bytes]:
    for problem in unreadable:
        yield Reject.of(problem, problem.where, None, "file").line
    for result in results:
        yield from result.rejects()


def _left_out(
    results: Sequence[ChunkResult],
    choice: Choice,
    ids: Mapping[int, str],
    changed: Mapping[str, str],
) -> Iterator[bytes]:
    """Yields the lines of rejects.jsonl for samples that were not selected."""
    if not any(choice.codes):
        return
    for number, (_, line) in enumerate(_samples(results)):
        code = choice.codes[number]
        if code is None:
            continue
        why = "for the share of" if code in ("weight", "mix") else "by"
        detail = f"left out {why} {code.replace(SELECTED, 'select.where: ', 1)}"
        if code == DUPLICATE:
            detail = "the same as another sample, or the beginning of one, which was kept"
        elif code == NEAR_DUPLICATE:
            detail = f"nearly equals sample {ids[choice.near[number]]} says"
        meta = _meta(line)
        if code == _LOADER:
            detail = changed[meta.id]
        problem = Problem(code, "sample", detail, records=0)
        yield Reject.of(problem, meta.source, meta.format, meta.record).line


def _samples(results: Sequence[ChunkResult]) -> Iterator[tuple[bytes, bytes]]:
    for result in results:
        yield from result.samples()


def _meta(line: bytes) -> SampleMeta:
    return SampleMeta.read(_decoded(line))


def _decoded(line: bytes) -> dict[str, Any]:
    return cast("dict[str, Any]", loads(line))
