"""Looks at the turns of a sample: template edge cases, thoughts, languages, refusals."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from builder.audit.counts import BARE, FOLLOWING, THINKING, Counts, count
from builder.audit.notes import AuditRow, FindingNotes
from builder.dataset.forms import targets
from builder.qwen3.flat import written_style
from builder.qwen3.render import is_bare, is_following, is_response
from builder.trainers.table import wider

MESSAGES = {
    "empty_turn": "assistant turns without text, thought or call",
    "refusal": "assistant turns that refuse",
    "repeated_turn": "assistant turns that repeat an earlier one word for word",
    "truncated_response": "tool responses that say they were truncated",
    "unread": "samples whose text cannot be parsed (builder verify says why)",
}
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
REPEATED = 20
"""Code points from which an equal turn counts as repeated: "Done." may occur twice."""

_SCRIPTS = {"CJK": "Han", "HIRAGANA": "Kana", "KATAKANA": "Kana"}
"""{first word of the names of a script's letters: its name}, where these differ."""

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


def count_turns(row: AuditRow, counts: Counts) -> None:
    """Counts what the text of a sample shows: language, edge cases, thoughts, sizes by query."""
    for edge in _edges(row):
        count(counts.edges, edge)
    answers = sum(role == "assistant" for role, _ in row.sample.messages)
    counts.widest = max(counts.widest, wider(row.meta.tokens, answers))
    if row.meta.trained_tokens:
        counts.query_tokens += sum(_queries(row))
        counts.thinking += _thinking_turns(row)
    asked = (
        text
        for role, text in row.sample.messages
        if role == "user" and not is_response(text.strip("\n"))
    )
    count(counts.languages, language(next(asked, "")[:4000]))


def note_turns(row: AuditRow, notes: FindingNotes) -> None:
    """Notes what is wrong with the turns of a sample."""
    if row.dialogue is None:
        notes.add("unread", row)
        return
    seen: set[str] = set()
    for at, turn in enumerate(row.dialogue.turns):
        part = f"messages[{at}]"
        if turn.role == "assistant":
            has_more = bool(turn.calls or turn.reasoning)
            _note_answer(row, part, turn.content, has_more, seen, notes)
        for text in turn.responses:
            edge = text[:200] + text[-200:] if len(text) > 400 else text
            if any(cue in edge for cue in _CUT_CUES) and _CUT.search(edge):
                notes.add("truncated_response", row, part)


def _note_answer(
    row: AuditRow, part: str, text: str, has_more: bool, seen: set[str], notes: FindingNotes
) -> None:
    if not text.strip() and not has_more:
        notes.add("empty_turn", row, part)
    if len(text) >= REPEATED:
        if text in seen:
            notes.add("repeated_turn", row, part, f"{len(text)} characters")
        seen.add(text)
    begin = text[:600]
    lower = begin.lower()
    if any(cue in lower for cue in _REFUSAL_CUES) and _REFUSAL.search(begin):
        notes.add("refusal", row, part)


def language(text: str) -> str:
    """Returns the script of most letters, and the language if the script is Latin."""
    script = _script(text)
    if script != "Latin":
        return script
    known = (_LANGUAGES_OF.get(word, ()) for word in _WORD.findall(text.lower()))
    scores = Counter(chain.from_iterable(known))
    best = max(_LANGUAGES, key=lambda name: scores[name])
    return best if scores[best] >= 2 else "Latin script, too short to tell"


def _script(text: str) -> str:
    """Returns the script of most letters, or "none"."""
    letters = Counter(filter(str.isalpha, text))
    scripts: Counter[str] = Counter()
    for letter, n in letters.items():
        scripts[unicodedata.name(letter, "none").partition(" ")[0]] += n
    most = max(scripts, key=lambda name: scripts[name], default="none")
    return _SCRIPTS.get(most, most if most == "none" else most.title())


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
        if turns and turns[-1].calls:
            yield "the last turn calls"
        if any(turn.reasoning for turn in turns):
            yield THINKING
        elif turns:
            yield "no thought: an empty think block before the last turn only"
