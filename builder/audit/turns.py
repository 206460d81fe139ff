"""Counts properties of turns: behaviour, parity, template edge cases, languages, refusals."""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise

from builder.audit.lengths import turn_histograms
from builder.audit.notes import AuditRow, FindingNotes
from builder.audit.pattern import PATTERNS, pattern
from builder.audit.result import AuditFinding, AuditTable, Histogram, ParityCount
from builder.dataset.samples import targets
from builder.ledger import ranked
from builder.qwen3.parity import MODES
from builder.qwen3.render import is_bare, is_following, is_response
from builder.qwen3.written import written_style
from builder.trainers import LONG
from builder.trainers.record import Facts

MESSAGES = {
    "empty_turn": "assistant turns without text, thought or call",
    "refusal": "assistant turns that refuse",
    "repeated_turn": "assistant turns that repeat an earlier one word for word",
    "truncated_response": "tool responses that say they were truncated",
    "unread": "samples whose text cannot be parsed (builder verify says why)",
}
CODES = tuple(sorted(MESSAGES))

_REFUSAL = re.compile(
    r"\b(?:I(?:'m| am) (?:sorry|afraid)[^.!?\n]{0,60}\b(?:can(?:'t|not)|unable|not able|won't)"
    r"|I (?:cannot|can't|won't|am not able to|am unable to|'m unable to)"
    r" (?:help|assist|comply|fulfil|do that|provide|perform|complete|book|order)"
    r"|as an AI\b|against my (?:guidelines|programming|policy))",
    re.IGNORECASE,
)
_REFUSAL_CUES = ("can't", "cannot", "unable", "not able", "won't", "an a", "aga")
"""Every match of `_REFUSAL` contains one of these; a fast test before the pattern."""
_CUT = re.compile(
    r"\[?(?:\.\.\.|…)?\s?\(?(?:output |content |response |result )?(?:was |has been )?"
    r"(?:truncated|clipped)\b|(?:characters|lines|bytes|tokens) (?:truncated|omitted|elided)",
    re.IGNORECASE,
)
_CUT_CUES = ("runcated", "lipped", "mitted", "lided", "RUNCATED")
BARE = "tools without a system turn: the template writes one"
FOLLOWING = "a query right after tool responses"
THINKING = "a thought that the template shows"
REPEATED = 20
"""Code points from which an equal turn counts as repeated: "Done." may occur twice."""

_SCRIPTS = (
    ("Latin", "A-Za-z\u00c0-\u024f"),
    ("Cyrillic", "\u0400-\u052f"),
    ("Greek", "\u0370-\u03ff"),
    ("Han", "\u4e00-\u9fff\u3400-\u4dbf"),
    ("Kana", "\u3040-\u30ff"),
    ("Hangul", "\uac00-\ud7af\u1100-\u11ff"),
    ("Arabic", "\u0600-\u06ff\u0750-\u077f"),
    ("Hebrew", "\u0590-\u05ff"),
    ("Devanagari", "\u0900-\u097f"),
    ("Thai", "\u0e00-\u0e7f"),
)
_IN_SCRIPT = {name: re.compile(f"[{letters}]") for name, letters in _SCRIPTS}

_LANGUAGES = {
    "English": "the and is of to you that it for with what this are can",
    "German": "der die und das ist nicht ich ein eine mit für auf den wie",
    "French": "le les est une des dans pour que vous je pas sur avec du",
    "Spanish": "el los es una que en para por las con del como mi no",
    "Portuguese": "os é uma que em para não com do da você por um dos",
    "Italian": "il è una che di per non con sono della questo mi gli del",
    "Dutch": "de het een en van ik niet dat met voor op te zijn je",
}
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words in _LANGUAGES.items():
    for _common in dict.fromkeys(_words.split()):
        _LANGUAGES_OF.setdefault(_common, []).append(_language)
_WORD = re.compile(r"[^\W\d_]+")


class TurnAudit:
    """Counts over the turns; takes four bytes for each sample and histogram."""

    def __init__(self) -> None:
        self.notes = FindingNotes()
        self._turns = array("I")
        self._calls = array("I")
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """{table: counts}; "totals" has trained turns, tokens, and trained tokens."""

    def add(self, row: AuditRow) -> str:
        """Counts a sample; returns its class of behaviour, or "unread" if it cannot be parsed."""
        for edge in _edges(row):
            self._counts["edges"][edge] += 1
        self._count_parity(row)
        messages = row.sample.messages
        asked = (
            text for role, text in messages if role == "user" and not is_response(text.strip("\n"))
        )
        script, language = script_and_language(next(asked, "")[:4000])
        self._counts["scripts"][script] += 1
        self._counts["languages"][language] += 1
        if row.dialogue is None:
            self.notes.add("unread", row)
            self._counts["patterns"]["unread"] += 1
            return "unread"
        seen: set[str] = set()
        answers = 0
        for at, turn in enumerate(row.dialogue.turns):
            part = f"messages[{at}]"
            if turn.role == "assistant":
                answers += 1
                self._answer(row, part, turn.content, bool(turn.calls or turn.reasoning), seen)
            for text in turn.responses:
                edge = text[:200] + text[-200:] if len(text) > 400 else text
                if any(cue in edge for cue in _CUT_CUES) and _CUT.search(edge):
                    self.notes.add("truncated_response", row, part)
        self._turns.append(answers)
        self._calls.append(sum(len(turn.calls) for turn in row.dialogue.turns))
        name = row.meta.pattern
        name = name if name in PATTERNS else pattern(row.dialogue, row.failed_calls)
        self._counts["patterns"][name] += 1
        return name

    def _answer(self, row: AuditRow, part: str, text: str, has_more: bool, seen: set[str]) -> None:
        if not text.strip() and not has_more:
            self.notes.add("empty_turn", row, part)
        if len(text) >= REPEATED:
            if text in seen:
                self.notes.add("repeated_turn", row, part, f"{len(text)} characters")
            seen.add(text)
        begin = text[:600]
        lower = begin.lower()
        if any(cue in lower for cue in _REFUSAL_CUES) and _REFUSAL.search(begin):
            self.notes.add("refusal", row, part)

    def _count_parity(self, row: AuditRow) -> None:
        totals = self._counts["totals"]
        if row.meta.parity:
            totals["turns"] += row.meta.assistant_turns
            for mode in MODES:
                self._counts["parity"][mode] += row.meta.parity.get(mode, 0)
        if row.meta.trained_tokens:
            totals["tokens"] += row.meta.tokens
            totals["trained tokens"] += row.meta.trained_tokens
            queries = [*_queries(row)]
            totals["query tokens"] += sum(queries)
            if row.meta.reasoning == "kept" or row.meta.changes.get("reasoning_dropped"):
                totals["windowed tokens"] += _windowed(queries)
            totals["thinking turns"] += _thinking_turns(row)

    def merge(self, later: TurnAudit) -> None:
        """Adds the counts of the samples that follow."""
        self.notes.merge(later.notes)
        self._turns += later._turns
        self._calls += later._calls
        for table, counts in later._counts.items():
            self._counts[table].update(counts)

    def tables(self, mix: Mapping[str, float]) -> list[AuditTable]:
        """Returns behaviour with its target `mix`, edge cases, parity, scripts and languages."""
        patterns, edges = self._counts["patterns"], self._counts["edges"]
        scripts, spoken = self._counts["scripts"], self._counts["languages"]
        samples = max(patterns.total(), 1)
        names = [*PATTERNS, *(["unread"] if patterns["unread"] else [])]
        behaviour = tuple(
            (name, patterns[name], round(patterns[name] / samples, 4)) for name in names
        )
        parity = tuple(
            (mode, count.in_parity, count.trained, round(count.in_parity / count.trained, 4))
            for mode, count in self.parity.items()
        )
        target = tuple((name, share) for name, share in mix.items())
        return [
            AuditTable(
                "patterns", "Behaviour", ("pattern", "samples", "share"), behaviour, bars="share",
                target=target,
            ),
            AuditTable(
                "edges", "Edge cases of the template", ("case", "samples"), ranked(edges)
            ),
            AuditTable(
                "parity",
                "Trained turns that match inference",
                ("mode", "turns", "trained", "share"),
                parity,
                bars="share",
            ),
            AuditTable(
                "scripts", "Scripts of user turns", ("script", "samples"), ranked(scripts)
            ),
            AuditTable(
                "languages", "Languages of user turns", ("language", "samples"),
                ranked(spoken), "by common words of seven languages", "samples",
            ),
        ]  # fmt: skip

    @property
    def languages(self) -> dict[str, int]:
        """Returns {language or script of the first query: samples}, most frequent first."""
        return dict(ranked(self._counts["languages"]))

    @property
    def parity(self) -> dict[str, ParityCount]:
        """Returns {mode: count of trained turns}; {} if no sample has meta/."""
        trained, counts = self._counts["totals"]["turns"], self._counts["parity"]
        return {mode: ParityCount(counts[mode], trained) for mode in MODES} if trained else {}

    @property
    def trained_share(self) -> float | None:
        """Returns the share of the tokens that is trained; None if no sample counts them."""
        totals = self._counts["totals"]
        return totals["trained tokens"] / totals["tokens"] if totals["tokens"] else None

    @property
    def trained_tokens(self) -> int:
        """Returns the number of trained tokens."""
        return self._counts["totals"]["trained tokens"]

    @property
    def query_tokens(self) -> int:
        """Returns about the number of tokens of one sample for each query (`unit: query`)."""
        return self._counts["totals"]["query tokens"]

    @property
    def windowed_tokens(self) -> int:
        """Returns `query_tokens` of the samples with thoughts, in windows of `LONG` tokens."""
        return self._counts["totals"]["windowed tokens"]

    @property
    def thinking_turns(self) -> int:
        """Returns the number of trained turns with a thought."""
        return self._counts["totals"]["thinking turns"]

    def with_edges(self, facts: Facts) -> Facts:
        """Returns the facts with the counts of the edge cases that matter to trainers."""
        edges = self._counts["edges"]
        return replace(
            facts, bare=edges[BARE], following=edges[FOLLOWING], thinking=edges[THINKING]
        )

    def histograms(self) -> list[Histogram]:
        """Returns the histograms of assistant turns and of calls per sample."""
        return turn_histograms(self._turns, self._calls)

    def findings(self) -> Iterator[AuditFinding]:
        """Yields the findings."""
        for code in self.notes.codes():
            yield self.notes.finding("turns", code, MESSAGES[code])


def script_and_language(text: str) -> tuple[str, str]:
    """Returns the script of most letters, and the language if the script is Latin."""
    script = _script(text)
    if script != "Latin":
        return script, script
    known = (_LANGUAGES_OF.get(word, ()) for word in _WORD.findall(text.lower()))
    scores = Counter(chain.from_iterable(known))
    best = max(_LANGUAGES, key=lambda name: scores[name])
    return script, best if scores[best] >= 2 else "Latin script, too short to tell"


def _script(text: str) -> str:
    """Returns the script of most letters, or "none"."""
    if text.isascii():
        return "Latin" if _IN_SCRIPT["Latin"].search(text) else "none"
    counts = {name: len(letters.findall(text)) for name, letters in _IN_SCRIPT.items()}
    most = max(counts, key=lambda name: counts[name])
    return most if counts[most] else "none"


def _queries(row: AuditRow) -> Iterator[int]:
    """Yields about the number of tokens of each sample that ends with a query's answer."""
    sample, spans = row.sample, row.meta.spans
    trained = {*targets(sample, "conversation", len(spans))}
    ends = iter(spans)
    answers = reached = 0
    before = ""
    for role, text in sample.messages:
        if role == "assistant":
            reached = next(ends, (0, reached))[1] if answers in trained else reached
            answers += 1
        elif before == "assistant" and reached and not is_response(text.strip("\n")):
            yield reached * row.meta.tokens // max(row.meta.chars, 1)
            reached = 0
        before = role
    if reached:
        yield reached * row.meta.tokens // max(row.meta.chars, 1)


def _windowed(queries: Sequence[int]) -> int:
    """Returns the tokens of the samples where each is divided into windows that train its part."""
    parts = (end - begin for begin, end in pairwise((0, *queries)))
    return sum(
        tokens if tokens <= LONG else max(own, LONG)
        for tokens, own in zip(queries, parts, strict=True)
    )


def _thinking_turns(row: AuditRow) -> int:
    """Returns the number of trained turns with a thought; 0 if the sample cannot be parsed."""
    turns = row.dialogue.turns if row.dialogue is not None else ()
    answers = [turn for turn in turns if turn.role == "assistant"]
    trained = targets(row.sample, row.meta.unit, len(row.meta.spans))
    return sum(bool(answers[at].reasoning) for at in trained) if answers else 0


def _edges(row: AuditRow) -> Iterator[str]:
    """Yields the cases in which the template does not simply render the messages as they are."""
    queries = [
        at
        for at, (role, text) in enumerate(row.sample.messages)
        if role == "user" and not is_response(text.strip("\n"))
    ]
    if is_bare(row.sample):
        yield BARE
    if len(queries) > 1:
        yield "more than one query: thoughts before the last are not shown"
    if is_following(row.sample, written_style(row.sample)):
        yield FOLLOWING
    if row.dialogue is not None:
        turns = row.dialogue.turns
        if any(turn.reasoning for turn in turns):
            yield THINKING
        if turns and turns[-1].calls:
            yield "the last turn calls"
        if any(turn.reasoning for turn in turns):
            yield "thoughts kept"
        elif turns:
            yield "no thought: an empty think block before the last turn only"
