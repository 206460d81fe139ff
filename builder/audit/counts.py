"""Counts a dataset in one pass: report, viewer, audit, summary and card take their numbers here.

A line of meta/ is enough where there is one; `audit` measures the samples that have none. Memory:
about 50 bytes a sample, and a few hundred names of each field.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

from builder.dataset.files import dataset_files
from builder.dataset.meta import SampleMeta
from builder.dataset.rows import dataset_rows, json_lines
from builder.dataset.store import characters
from builder.output.manifest import Manifest
from builder.qwen3.render import PARTS
from builder.text import shorten
from builder.trainers.table import DEFAULT_LENGTHS, LONG, Facts, over_limits, training_split

NAMES = 400
"""Names of a field that are counted; the others are counted together."""
OTHERS = "(others)"
FIELDS = ("format", "model", "pattern", "tools_source", "reasoning", "unit", "license", "split")
"""Fields of meta/ whose values are counted."""
SUPPLIABLE = ("tools", "system")
"""What the user can supply of a context that the log lacks."""
_OWN_LISTS = frozenset(("bad_tool", "server_tool_dropped", "tools_added_later"))
"""Changes to the list of tools that a log has."""
_ALWAYS = ("reminders", "reasoning")
"""What logs of some agents never hold."""
BARE = "tools without a system turn: the template writes one"
FOLLOWING = "a query right after tool responses"
THINKING = "a thought that the template shows"

_Changes = tuple[object, dict[str, int]]
"""A conversation, and the highest count of each change in its samples."""


def _numbers() -> array[int]:
    return array("I")


def _names() -> Counter[str]:
    return Counter()


@dataclass(slots=True)
class Counts:
    """Counts over the samples of a dataset.

    turns        trained turns; `parity` those that match inference, by mode
    context      trained turns by the level of their context, `missing` by what it lacks,
                 `supplied` by what of that the user supplied (`system`, `tools`)
    completed    trained turns that lack nothing but what the user supplied
    lacking      trained turns that lack what the user can supply, and did not
    own_tools    trained turns whose tools are not all known, though their log lists some: no option
                 supplies these
    gaps         samples by what their context lacks and nobody can supply, unless it is only text
                 that the agent program inserted; `gap_samples`, `gap_turns`: all with such a gap
    windows      samples without earlier turns, left out for the length; `window_turns` their turns
    long_turns   trained turns of samples that are longer than trainers take (`LONG`)
    turn_tokens  about the tokens of one sample for each trained turn, `query_tokens` for each query
    thinking     trained turns with a thought
    changes      every change to logged text, once for the samples of a conversation
    failed       trained turns by how a call of theirs failed; `untrained`: by why they are not
    by_field     {field: {value: samples}}, `tokens_of` the same in tokens
    models       {format: models}, `versions` {format: versions of the agent} of the samples that
                 lack what the user can supply
    lengths      tokens of each sample, in order, or characters unless `has_tokens`
    widest       the tokens of the longest sample as a trainer counts that writes empty think blocks
    first, most  rows to show: the first of a kind, the one with the most of something
    """

    samples: int = 0
    tokens: int = 0
    trained_tokens: int = 0
    calls: int = 0
    turns: int = 0
    completed: int = 0
    lacking: int = 0
    own_tools: int = 0
    gap_samples: int = 0
    gap_turns: int = 0
    windows: int = 0
    window_turns: int = 0
    long_turns: int = 0
    turn_tokens: int = 0
    query_tokens: int = 0
    thinking: int = 0
    parity: Counter[str] = field(default_factory=_names)
    context: Counter[str] = field(default_factory=_names)
    missing: Counter[str] = field(default_factory=_names)
    supplied: Counter[str] = field(default_factory=_names)
    gaps: Counter[str] = field(default_factory=_names)
    recorded: Counter[str] = field(default_factory=_names)
    changes: Counter[str] = field(default_factory=_names)
    failed: Counter[str] = field(default_factory=_names)
    untrained: Counter[str] = field(default_factory=_names)
    languages: Counter[str] = field(default_factory=_names)
    edges: Counter[str] = field(default_factory=_names)
    by_field: dict[str, Counter[str]] = field(default_factory=dict)
    tokens_of: dict[str, Counter[str]] = field(default_factory=dict)
    models: dict[str, Counter[str]] = field(default_factory=dict)
    versions: dict[str, Counter[str]] = field(default_factory=dict)
    lengths: array[int] = field(default_factory=_numbers)
    turn_counts: array[int] = field(default_factory=_numbers)
    call_counts: array[int] = field(default_factory=_numbers)
    parts: dict[str, array[int]] = field(default_factory=dict)
    has_tokens: bool = False
    widest: int = 0
    first: dict[str, int] = field(default_factory=dict)
    most: dict[str, tuple[int, int]] = field(default_factory=dict)
    _begun: _Changes = (None, {})
    _reached: _Changes = (None, {})
    _is_one: bool = True

    def add(self, meta: SampleMeta, split: str, length: int) -> None:
        """Counts a sample of so many tokens, or characters if its tokens are not known."""
        row = self.samples
        self.samples += 1
        self.tokens += meta.tokens
        self.trained_tokens += meta.trained_tokens
        self.calls += meta.calls
        turns = meta.assistant_turns
        self.turns += turns
        self.has_tokens = self.has_tokens or meta.tokens > 0
        self.long_turns += turns if meta.tokens > LONG else 0
        self.lengths.append(length)
        self.turn_counts.append(turns)
        self.call_counts.append(meta.calls)
        for part in PARTS:
            numbers = self.parts.setdefault(part, array("I"))
            numbers.append(meta.tokens_by_part.get(part, 0))
        if meta.spans and meta.chars:
            self.turn_tokens += sum(end for _, end in meta.spans) * meta.tokens // meta.chars
        if meta.changes.get("history_left_out"):
            self.windows += 1
            self.window_turns += turns
        if meta.compared:
            count(self.recorded, meta.compared)
        for counter, counts in (
            (self.parity, meta.parity),
            (self.failed, meta.failed_turns),
            (self.untrained, meta.untrained_turns),
        ):
            for name, number in counts.items():
                count(counter, name, number)
        for name in FIELDS:
            value = split if name == "split" else getattr(meta, name)
            if value is None and meta.id:
                value = "(not stated)"
            for one in filter(None, meta.models if name == "model" and meta.models else (value,)):
                count(self.by_field.setdefault(name, Counter()), one)
                count(self.tokens_of.setdefault(name, Counter()), one, meta.tokens)
        if meta.context is not None:
            count(self.context, meta.context.level, turns)
            for code in meta.context.missing:
                count(self.missing, code, turns)
            self._add_missing(meta, meta.context.missing)
        self._add_changes(meta)
        for kind in _kinds(meta):
            if len(self.first) < NAMES:
                self.first.setdefault(kind, row)
        if meta.schema_violations > self.most.get("schema violations", (0, 0))[0]:
            self.most["schema violations"] = (meta.schema_violations, row)

    def _add_missing(self, meta: SampleMeta, missing: Iterable[str]) -> None:
        """Counts what the context of a sample lacks: what the user supplied, can supply, or not."""
        turns = meta.assistant_turns
        supplied = {"tools"} if meta.tools_source in ("supplied", "captured") else set()
        if not {"system_supplied", "system_replaced"}.isdisjoint(meta.changes):
            supplied.add("system")
        self.supplied.update(dict.fromkeys(sorted(supplied), turns))
        gaps = {*missing} - {*SUPPLIABLE, *_ALWAYS}
        for code in sorted(gaps):
            count(self.gaps, code)
        self.gap_samples += bool(gaps)
        self.gap_turns += turns if gaps else 0
        lacking = {*missing} - supplied
        has_own = "tools" in lacking and not _takes_tools(meta)
        self.own_tools += turns if has_own else 0
        is_lacking = not (lacking - {"tools"} if has_own else lacking).isdisjoint(SUPPLIABLE)
        self.lacking += turns if is_lacking else 0
        is_other = "other_version" in meta.changes
        self.completed += turns if missing and not lacking and not is_other else 0
        name = shorten(meta.format or "", 80)
        if (is_lacking or is_other) and name and (name in self.models or len(self.models) < NAMES):
            models = self.models.setdefault(name, Counter())
            for model in meta.every_model:
                count(models, model or "")
            if meta.agent_version:
                count(self.versions.setdefault(name, Counter()), meta.agent_version)

    def _add_changes(self, meta: SampleMeta) -> None:
        """Counts the changes, except those that an earlier sample of the conversation has."""
        key = (meta.source, meta.conversation) if meta.conversation else None
        is_same = key is not None and key == self._reached[0]
        known = self._reached[1] if is_same else {}
        for code, number in meta.changes.items():
            if number > known.get(code, 0):
                count(self.changes, code, number - known.get(code, 0))
        self._is_one = self._is_one and (is_same or self.samples == 1)
        self._reached = (key, _highest(known, meta.changes))
        if self._is_one:
            self._begun = self._reached

    def merge(self, later: Counts) -> None:
        """Adds the counts of the samples that follow."""
        if not later.samples:
            return
        before = self.samples
        key, changes = self._reached
        begun, reached = later._begun, later._reached
        if key is not None and key == begun[0]:
            for code, number in begun[1].items():
                if (repeated := min(number, changes.get(code, 0))) and code in self.changes:
                    self.changes[code] -= repeated
            joined = (key, _highest(changes, begun[1]))
            begun, reached = joined, joined if later._is_one else reached
            self._begun = joined if self._is_one else self._begun
            self._is_one = self._is_one and later._is_one
        else:
            self._begun = self._begun if before else begun
            self._is_one = later._is_one and not before
        self._reached = reached
        self.has_tokens = self.has_tokens or later.has_tokens
        self.widest = max(self.widest, later.widest)
        for kind, row in later.first.items():
            if len(self.first) < NAMES:
                self.first.setdefault(kind, before + row)
        for kind, (number, row) in later.most.items():
            if number > self.most.get(kind, (0, 0))[0]:
                self.most[kind] = (number, before + row)
        for item in fields(self):
            mine, other = getattr(self, item.name), getattr(later, item.name)
            if item.name in _BY_HAND or item.name.startswith("_"):
                continue
            if isinstance(mine, int):
                setattr(self, item.name, mine + other)
            elif isinstance(mine, Counter):
                _update(mine, other)
            elif isinstance(mine, array):
                mine.extend(other)
            elif item.name == "parts":
                for part, numbers in other.items():
                    mine.setdefault(part, array("I")).extend(numbers)
            else:
                for name, counts in other.items():
                    _update(mine.setdefault(name, Counter()), counts)

    @property
    def trained_share(self) -> float | None:
        """The share of the tokens that is trained; None if it is not known."""
        return self.trained_tokens / self.tokens if self.trained_tokens else None

    @property
    def training(self) -> Facts:
        """What configurations of trainers depend on."""
        splits = self.by_field.get("split", Counter[str]())
        return Facts(
            self.samples,
            max(self.lengths, default=0),
            self.widest,
            {
                name: sum(tokens > most for tokens in self.lengths)
                for name, most in DEFAULT_LENGTHS.items()
            },
            bare=self.edges[BARE],
            following=self.edges[FOLLOWING],
            thinking=self.edges[THINKING],
            train=splits[training_split(sorted(splits))],
            over=over_limits(self.lengths),
        )

    def with_contexts(self, manifest: Manifest) -> Counts:
        """Returns the counts with the contexts of the manifest, which knows that of each turn.

        A line of meta/ has the context of the whole sample.
        """
        stated = manifest.context
        if not stated.levels:
            return self
        return replace(self, context=Counter(stated.levels), missing=Counter(stated.missing))


_BY_HAND = ("has_tokens", "widest", "first", "most")
"""Fields that `merge` does not add up."""


def count(counter: Counter[str], value: str, number: int = 1) -> None:
    """Adds to the count of a name, or to that of the others if there are too many names."""
    if value in counter:
        counter[value] += number
        return
    name = shorten(value, 80)
    counter[name if name in counter or len(counter) < NAMES else OTHERS] += number


def _update(counter: Counter[str], later: Mapping[str, int]) -> None:
    for name, number in later.items():
        count(counter, name, number)


def _highest(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {code: max(one.get(code, 0), other.get(code, 0)) for code in {**one, **other}}


def _takes_tools(meta: SampleMeta) -> bool:
    """Returns whether definitions that the user supplies would be used: the log lists none."""
    is_listed = meta.tools_source not in ("inferred", "none", "")
    return not is_listed and _OWN_LISTS.isdisjoint(meta.changes)


def _kinds(meta: SampleMeta) -> Iterator[str]:
    """Yields the kinds of a sample; the first sample of each kind is shown."""
    if meta.pattern:
        yield shorten(meta.pattern, 40)
    if meta.format:
        yield shorten(meta.format, 40)
    if meta.tools_source in ("inferred", "supplied", "captured", "shared", "mixed"):
        yield f"tools {meta.tools_source}"
    if meta.reasoning in ("kept", "dropped"):
        yield f"reasoning {meta.reasoning}"
    for code in sorted(meta.changes):
        yield f"changed: {shorten(code, 40)}"


def count_dataset(dataset: str) -> Counts:
    """Counts a dataset by its lines of meta/, or by its rows where it has none.

    Raises UsageError if there is no such dataset.
    """
    counts = Counts()
    files = dataset_files(dataset)
    if files and all(item.meta is not None for item in files):
        for item in files:
            assert item.meta is not None, "as tested"
            for _, value in json_lines(item.meta):
                meta = SampleMeta.read(value)
                counts.add(meta, item.split, meta.tokens)
        return counts
    for row in dataset_rows(dataset):
        counts.add(row.meta, row.split, row.meta.tokens or characters(row))
    return counts
