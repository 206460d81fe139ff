"""Renders a sample for people: turns, calls with their arguments, tool definitions, an outline."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from re import Pattern
from types import MappingProxyType

from builder.audit.failures import failed_calls
from builder.conversation import Json
from builder.dataset.forms import targets as trained_answers
from builder.jsonio import depth, dumps
from builder.qwen3.calls import ParseFault
from builder.qwen3.flat import dialogue_of, split_answer, split_responses, written_style
from builder.qwen3.templates import Style
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str
from builder.report.html import EMPTY, Html, cut, join, macro, omission, tag, text
from builder.sample import Sample
from builder.text import counted, number, shorten

# -- shows what a call changes in a file as a diff: old and new text, or a patch -------------------

_OLD = ("old_string", "old_str", "oldText", "old_text", "oldString", "search")
_NEW = ("new_string", "new_str", "newText", "new_text", "newString", "replace")
_SEVERAL = ("edits", "replacements", "changes")
_PATCHES = ("patch", "patchText", "input", "diff", "patch_text")
_BEGINNINGS = ("*** Begin Patch", "--- ", "diff --git ", "@@ ", "<<<<<<< SEARCH", "------- SEARCH")
_MAX_LINES = 600
"""Lines of a text above which the old text is shown before the new, without a comparison."""
_SHOWN = 400
_STYLES = {"+": "added", "-": "removed", "@": "place"}

Edit = tuple[str, str]


def edits(arguments: Mapping[str, Json]) -> tuple[list[Edit | str], dict[str, Json]]:
    """Returns the edits of a call, each (old, new) or a patch, and the other arguments.

    The arguments with the edits are omitted from the others. Without edits, the list is empty.
    """
    others = dict(arguments)
    replaced: list[Edit | str] = []
    if pair := _pair(others):
        replaced.append(pair)
    for key in _SEVERAL:
        listed = as_dicts(others.get(key))
        pairs = [_pair(item) for item in listed]
        # An edit that says more, such as `replace_all`, is shown as written.
        if pairs and all(pairs) and not any(listed):
            replaced += filter(None, pairs)
            del others[key]
    for key in _PATCHES:
        written = others.get(key)
        if isinstance(written, str) and written.lstrip().startswith(_BEGINNINGS):
            replaced.append(written)
            del others[key]
    return replaced, others


def _pair(values: dict[str, Json]) -> Edit | None:
    """Removes and returns the old and the new text, or returns None."""
    old = next((key for key in _OLD if isinstance(values.get(key), str)), None)
    new = next((key for key in _NEW if isinstance(values.get(key), str)), None)
    if old is None or new is None:
        return None
    before, after = values.pop(old), values.pop(new)
    assert isinstance(before, str), "chosen for this"
    assert isinstance(after, str), "chosen for this"
    return before, after


def edit_html(edit: Edit | str, limit: int) -> Html:
    """Returns a diff in at most about `limit` characters of text."""
    lines = edit.splitlines() if isinstance(edit, str) else list(_compared(*edit))
    shown: list[Html] = []
    size = 0
    for at, line in enumerate(lines):
        size += len(line) + 1
        if at and (size > limit or at >= _SHOWN):
            shown.append(omission(len(lines) - at, "lines"))
            break
        style = _STYLES.get(line[:1])
        cut = line if len(line) <= limit else f"{line[:limit]}…"
        shown.append(tag("span", text(cut + "\n"), class_=style) if style else text(cut + "\n"))
    return tag("pre", join(shown), class_="diff", dir="auto")


def _compared(old: str, new: str) -> Iterator[str]:
    """Yields the lines of both texts, marked as in a unified diff."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > _MAX_LINES:
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
        return
    for kind, first, last, begin, end in difflib.SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            yield from (f" {line}" for line in before[first:last])
            continue
        yield from (f"-{line}" for line in before[first:last])
        yield from (f"+{line}" for line in after[begin:end])


# -- tells the words of a person in a user message from text that an agent program inserted --------

_NAME = (
    r"[A-Za-z]+(?:[-_:][A-Za-z]+)+"  # command-name, ide_selection, qwen:user-prompt-submit-context
    r"|[a-z]+(?:Context|Memory|Instructions|Info|Reminders?|Rules|State)"
    r"|instructions|INSTRUCTIONS|permissions|skill|system"
)
_MATERIAL = r"context|attachments?|rules|environment|memory|memories|documents?|reminder"
"""Elements that a person may have written, too, but not to say what they want."""


def _opening(names: str) -> re.Pattern[str]:
    return re.compile(rf"<(?P<name>{names})(?:\s[^<>]{{0,400}})?>")


_OPENING = _opening(_NAME)
_OPENING_IN_TITLE = _opening(f"{_NAME}|{_MATERIAL}")
_OPENING_OR_CLOSING = re.compile(rf"{_OPENING.pattern}|</[A-Za-z][A-Za-z_:-]*>")
_LINES = re.compile(
    r"^(?:Caveat: The messages below|\[Request interrupted by user|\[Image: source:"
    r"|\[Response interrupted by|# (?:AGENTS|CLAUDE|GEMINI)\.md instructions\b)[^\n]*$"
    r"|^The following is an? (?=<[A-Z_]+>)",
    re.MULTILINE,
)
_WHOLE = (
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem",
    "Some of the conversation history has been summarized",
    "This is an automatically generated checkpoint condensing",
    "Your response above was cut off mid-stream",
    "Output token limit hit.",
    "Base directory for this skill:",
    "[TASK RESUMPTION]",
    "[ERROR] You did not use a tool",
    "# task_progress",
    "# TODO LIST",
)
"""Beginnings of text that a program wrote to its end: summaries, notices, reminders."""
_REMINDER = re.compile(
    r"^<(?P<name>system[-_](?:reminder|warning|message|notification|note))>", re.MULTILINE
)
"""The beginning of what an agent program adds to the results of tools."""
_WRAPPERS = re.compile(
    r"</?(?:user_?(?:query|request|message|prompt|input)|task|feedback|answer)(?:\s[^<>]{0,400})?>",
    re.IGNORECASE,
)
"""Tags that agent programs put around the words of a person."""
_BEFORE_WORDS = re.compile(r"\A(?:(?:\[(?:image|Image #\d+|document|file)\]|</[\w:-]+>)\s*)+(?=\S)")
"""What stands for media before the words of a person, and ends of elements that were cut."""
_REQUEST = re.compile(r"Primary Request and Intent:?[\s*-]*")
"""Stands before the user's request in a summary of a conversation."""
_READ = 20_000
"""Characters of a message that are searched for the words of a person."""


def pieces(content: str, opening: re.Pattern[str] = _OPENING) -> Iterator[tuple[str, str]]:
    """Yields (name, text) of consecutive pieces: the name is "" for the words of a person."""
    done = 0
    for start, end in (*_inserted(content, opening), (len(content), len(content))):
        between = content[done:start]
        if between.strip() or start == end:
            is_program = between.lstrip().startswith(_WHOLE)
            if between or not done:
                yield _shown_name(between) if is_program else "", between
            done = start
        if end > start:
            yield _shown_name(content[done:end]), content[done:end]
            done = end


def pieces_of_result(content: str) -> Iterator[tuple[str, str]]:
    """Yields (name, text) of consecutive pieces: the name is "" for what the tool returned.

    Only reminders on lines of their own are inserted; other elements may be a page or a program.
    """
    done = 0
    unclosed: set[str] = set()
    for match in _REMINDER.finditer(content):
        start, name = match.start(), match["name"]
        if start < done or name in unclosed:
            continue
        closing = f"</{name}>"
        last = content.find(closing, match.end())
        if last < 0:
            unclosed.add(name)
            continue
        if content[done:start].strip():
            yield "", content[done:start]
        done = last + len(closing)
        yield name, content[start:done]
    if not done or content[done:].strip():
        yield "", content[done:]


def _shown_name(inserted: str) -> str:
    """Returns the name of inserted text: that of its element, or its first words."""
    opening = _OPENING.match(inserted.lstrip())
    return opening[1] if opening else f"{' '.join(inserted[:200].split()[:5])} …"


def words_of_person(messages: Iterable[str]) -> str:
    """Returns the first words of a person in user messages; "" if there are none.

    If no message has any, returns the request that a summary of an earlier conversation states, or
    else the first message without inserted lines and names of elements.
    """
    first: str | None = None
    for content in messages:
        first = content if first is None else first
        read = _WRAPPERS.sub("", content[:_READ])
        own = pieces(read, _OPENING_IN_TITLE)
        words = "".join(text for name, text in own if not name).strip()
        if words:
            return _BEFORE_WORDS.sub("", words, count=1)
    if stated := _REQUEST.search((first or "")[: 3 * _READ]):
        return (first or "")[stated.end() :]
    bare = _LINES.sub("", _OPENING_OR_CLOSING.sub(" ", first or "")).strip()
    return bare or first or ""


def _inserted(content: str, opening: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yields [start, end) of inserted texts in order.

    An element without an end counts only where no words of a person precede it: its end was cut.
    """
    unclosed: set[str] = set()
    matches = sorted(
        (*opening.finditer(content), *_LINES.finditer(content)), key=lambda item: item.start()
    )
    done = 0
    for match in matches:
        start, end = match.span()
        if start < done or _WRAPPERS.match(content, start):
            continue
        if name := match.groupdict().get("name"):
            closing = f"</{name}>"
            last = -1 if name in unclosed else content.find(closing, end)
            if last < 0:
                unclosed.add(name)
                if content[done:start].strip():
                    continue
            end = last + len(closing) if last >= 0 else len(content)
        yield start, end
        done = end


_DEEP = 40
"""Maximum depth of JSON that is indented."""
_FOLD_CHARACTERS = 1_200
_FOLD_LINES = 20
_ROLES = ("system", "user", "assistant", "tool")

_Block = tuple[str, object, Html, bool]
"""(kind, head, content, whether it is open) of a part of a turn."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a sample a page shows.

    trained, other        code points of a trained, and of any other piece of the rendering
    content               code points of a message
    turns, tools, tokens  how many of each
    """

    trained: int = 6_000
    other: int = 1_600
    content: int = 4_000
    turns: int = 40
    tools: int = 24
    tokens: int = 400

    def reduced(self) -> Limits:
        """Returns limits of about half the size."""
        return Limits(
            self.trained // 2 + 20,
            self.other // 2 + 20,
            self.content // 2 + 20,
            self.turns // 2 + 2,
            self.tools // 2 + 1,
            self.tokens // 2,
        )


@dataclass(frozen=True, slots=True)
class DisplayOptions:
    """Options for displaying a sample.

    hits       matches to mark in the turns
    outline    whether turns have ids (`turn-0`, …), and an outline links to them
    records    {turn: (element id, name)} of the raw record that contains its text
    alongside  shown next to the conversation instead of the rendered text
    rendered   whether the rendered text is shown if nothing else is alongside
    """

    hits: Pattern[str] | None = None
    outline: bool = False
    records: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    alongside: Html | None = None
    rendered: bool = True


IN_A_LIST = DisplayOptions()
"""Options for a page with many samples."""


class ShownTurns:
    """The turns of a sample as they are shown, with the trained ones and `failures` marked.

    The trained turns are those of a weight other than 0; without weights, the last `trained` ones.
    """

    def __init__(
        self,
        sample: Sample,
        trained: int,
        limits: Limits,
        reading: DisplayOptions = IN_A_LIST,
        failures: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self._sample = sample
        self._limits = limits
        self._reading = reading
        self._hits = reading.hits
        self._failures = failures
        self._style = written_style(sample)
        answers = [at for at, (role, _) in enumerate(sample.messages) if role == "assistant"]
        chosen = trained_answers(sample, "conversation", trained) if trained else ()
        self._trained = {answers[at] for at in chosen}
        count, most = len(sample.messages), limits.turns
        self._shown = list(range(count))
        if count > most:
            self._shown = self._shown[: most // 3] + self._shown[count - (most - most // 3) :]

    def html(self) -> Html:
        """Returns the tool definitions and the turns."""
        items = []
        before = -1
        for at in self._shown:
            role, content = self._sample.messages[at]
            name = _role_name(role, content, self._style)
            blocks = list(self._blocks(role, content, name))
            if self._sample.thoughts and (thought := self._sample.thoughts[at]):
                blocks.insert(0, ("thought", None, self._content(thought), True))
            items.append(
                {
                    "gap": omission(at - before - 1, "messages") if at != before + 1 else EMPTY,
                    "name": name,
                    "style": name if name in _ROLES else "other",
                    "is_trained": at in self._trained,
                    "failure": self._failures.get(at, ""),
                    "record": self._reading.records.get(at),
                    "id": f"turn-{at}" if self._reading.outline else "",
                    "blocks": blocks,
                }
            )
            before = at
        return macro("sample", "turns", tools=self._tools(), items=items)

    def outline(self, tokens: Sequence[int], *, estimated: bool) -> Html:
        """Returns links to the turns, with their beginnings or calls, and tokens if known."""
        sign = "~" if estimated else ""
        items = [
            (
                at,
                _role_name(role, content, self._style),
                self._summary(role, content),
                self._failures.get(at, ""),
                f"{sign}{number(tokens[at])}" if tokens else "",
                at in self._trained,
            )
            for at in self._shown
            for role, content in (self._sample.messages[at],)
        ]
        unit = " and their tokens" if tokens else ""
        count = len(self._sample.messages)
        return macro("sample", "outline", count=count, unit=unit, items=items)

    def _summary(self, role: str, content: str) -> str:
        """Returns the names of an assistant turn's calls, or the beginning of a message."""
        if role == "assistant":
            try:
                answer = split_answer(content, self._style)
            except ParseFault:
                return shorten(content, 60)
            names = ", ".join(call.name for call in answer.calls[:20])
            return shorten(names or answer.content or answer.reasoning, 60)
        if _role_name(role, content, self._style) == "tool":
            return shorten("; ".join((split_responses(content, self._style) or [])[:5]), 60)
        return shorten(words_of_person([content]) if role == "user" else content, 60)

    def _blocks(self, role: str, content: str, name: str) -> Iterator[_Block]:
        most = self._limits.tools
        if role == "assistant":
            yield from self._answer(content)
        elif name == "tool":
            responses = tuple(split_responses(content, self._style) or ())
            for response in responses[:most]:
                yield from self._pieces(list(pieces_of_result(response)), is_result=True)
            if len(responses) > most:
                yield "text", None, omission(len(responses) - most, "responses"), True
        elif role == "system":
            yield self._folded(content)
        elif role == "user":
            yield from self._pieces(list(pieces(content)), is_result=False)
        else:
            yield "text", None, self._content(content), True

    def _pieces(self, found: list[tuple[str, str]], *, is_result: bool) -> Iterator[_Block]:
        """Yields pieces of a message; what an agent program inserted is folded under its name."""
        for name, piece in found:
            own = piece.strip("\n") if len(found) > 1 else piece
            if name:
                head = (shorten(name, 60), f"{number(len(piece))} characters")
                yield "fold inserted", head, self._content(piece), self._is_hit(piece)
            else:
                yield self._folded(own) if is_result else ("text", None, self._content(own), True)

    def _folded(self, content: str) -> _Block:
        """Returns the text, a long one folded under its beginning, and open if it has a match."""
        lines = content.count("\n") + 1
        if len(content) <= _FOLD_CHARACTERS and lines <= _FOLD_LINES:
            return "text", None, self._content(content), True
        size = f"{number(len(content))} characters, {number(lines)} lines"
        return "fold", (shorten(content, 90), size), self._content(content), self._is_hit(content)

    def _is_hit(self, content: str) -> bool:
        return self._hits is not None and self._hits.search(content) is not None

    def _content(self, content: str) -> Html:
        if not content:
            return tag("p", text("(empty)"), class_="note")
        return self._pre(content)

    def _pre(self, content: str) -> Html:
        return tag("pre", cut(content, self._limits.content, self._hits), dir="auto")

    def _answer(self, content: str) -> Iterator[_Block]:
        try:
            answer = split_answer(content, self._style)
        except ParseFault:
            yield "text", None, self._content(content), True
            return
        if answer.reasoning:
            yield "thought", None, self._content(answer.reasoning), True
        if answer.content:
            yield "text", None, self._content(answer.content), True
        most = self._limits.tools
        for call in answer.calls[:most]:
            name = cut(shorten(call.name, 120), 120, self._hits)
            yield "call", name, join(self._arguments(call.arguments)), True
        if len(answer.calls) > most:
            yield "text", None, omission(len(answer.calls) - most, "calls"), True

    def _arguments(self, arguments: Mapping[str, Json]) -> Iterator[Html]:
        """Yields the arguments: those of several lines as text, edits as diffs, others as JSON."""
        changed, others = edits(arguments) if self._hits is None else ([], dict(arguments))
        texts = {key: value for key, value in others.items()
                 if isinstance(value, str) and "\n" in value}  # fmt: skip
        others = {key: value for key, value in others.items() if key not in texts}
        if others or not (changed or texts):
            yield self._pre(indented(others))
        for key, value in texts.items():
            yield tag("p", cut(shorten(key, 120), 120, self._hits), class_="argument")
            yield self._pre(value)
        most = self._limits.tools
        yield from (edit_html(edit, self._limits.content) for edit in changed[:most])
        if len(changed) > most:
            yield omission(len(changed) - most, "edits")

    def _tools(self) -> dict[str, object] | None:
        tools, limits, hits = self._sample.tools, self._limits, self._hits
        if not tools:
            return None
        items = []
        for tool in tools[: limits.tools]:
            function = as_dict(tool, "function")
            name = shorten(as_str(function.get("name")) or "(no name)", 120)
            about = as_str(function.get("description"))
            schema = indented(function.get("parameters") if function else tool)
            items.append(
                (
                    cut(name, 120, hits),
                    cut(about, limits.other, hits),
                    cut(schema, limits.other, hits),
                )
            )
        left = len(tools) - limits.tools
        names = ", ".join(as_str(tool, "function", "name") for tool in tools[:20])
        return {
            "head": f"{counted(len(tools), 'tool')}: {shorten(names, 120)}",
            "listed": items,
            "more": tag("p", omission(left, "definitions")) if left > 0 else EMPTY,
            "open": self._is_hit(dumps(list(tools))) if hits is not None else False,
        }


def _role_name(role: str, content: str, style: Style) -> str:
    is_tool = role == "user" and split_responses(content, style) is not None
    return "tool" if is_tool else shorten(role, 20)


def failures_of(sample: Sample, logged: Mapping[str, str] | None) -> dict[int, str]:
    """Returns {number of a message with results: how one of their calls failed}.

    `logged` are the failures that the log states; None: the wording of the results decides.
    """
    dialogue = dialogue_of(sample)
    failures = failed_calls(dialogue, logged) if dialogue is not None else {}
    return {place.turn + 1: shorten(failure, 20) for place, failure in failures.items()}


def as_written(value: Json) -> str:
    """Returns text unchanged, and other values as indented JSON."""
    return value if isinstance(value, str) else indented(value)


def indented(value: Json) -> str:
    """Returns indented JSON, or one line for deeply nested values."""
    if depth(value) > _DEEP:
        return dumps(value)
    return json.dumps(value, ensure_ascii=False, indent=2)
