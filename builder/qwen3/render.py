"""Renders the flat form as Qwen3's template does, without a template engine.

The check `spec` compares its bytes with those of Hugging Face's template, as an independent second
implementation. It also returns what the template cannot: the positions of the trained texts and of
the control tokens that belong to the structure.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from builder.conversation import Json
from builder.qwen3.calls import STRUCTURE_TOKENS
from builder.qwen3.templates import SPECIFIED, Style, Thoughts, ToolsText
from builder.qwen3.tokens import TokenSequence
from builder.sample import Sample

RESPONSE_OPEN = "<tool_response>"
RESPONSE_CLOSE = "</tool_response>"

Part = tuple[str, int, int]
"""(name, start, end) of a part, in code points."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """A rendered conversation.

    text     the model's input
    answers  for each assistant turn [start, end) in code points: from just after
             `<|im_start|>assistant` and its newline to the end of its `<|im_end|>`
    control  (offset, token) of every control token that the structure puts into the text, in order
    parts    what the messages and definitions put into the text (`PARTS`), in order
    """

    text: str
    answers: tuple[tuple[int, int], ...]
    control: tuple[tuple[int, str], ...]
    parts: tuple[Part, ...] = ()


def render(
    messages: Sequence[tuple[str, str]], tools: Sequence[Json] = (), style: Style = SPECIFIED
) -> Rendering:
    """Renders (role, content) messages of the roles system, user and assistant, with tools."""
    return render_sample(Sample(tuple(messages), tuple(tools)), style)


def render_sample(sample: Sample, style: Style = SPECIFIED) -> Rendering:
    """Renders a sample, whose roles are those of `render`."""
    messages, thoughts = sample.messages, sample.thoughts
    writer = _Writer(style)
    first_system = messages[0][1] if messages and messages[0][0] == "system" else None
    writer.system(first_system, sample.definitions)
    query = last_query(messages, style)
    for index, (role, content) in enumerate(messages):
        text = content.strip() if style.trims == "all" else content
        if role == "system" and index == 0:
            continue
        if role in ("user", "system"):
            writer.begin(role)
            is_result = role == "user" and is_response(text, style)
            writer.marked(text, _response_tags(text, style) if is_result else ())
            writer.part("results" if is_result else role, len(text))
            writer.end()
        elif role == "assistant":
            last = index == len(messages) - 1
            thought, body = "", text
            if style.beside:
                beside = style.strip(thoughts[index]) if thoughts else ""
                shown = style.thoughts is Thoughts.every or index > query
                thought = _block(beside) if shown and (beside or style.fills) else ""
            elif style.thoughts.has_blocks:
                thought, body = _shown_thought(
                    text, after_query=index > query, last=last, style=style
                )
            elif style.thoughts is Thoughts.dropped or (
                style.thoughts is Thoughts.last and not last
            ):
                body = text.rpartition("</think>")[2].lstrip("\n")
            writer.assistant(thought, body)
    return writer.rendering()


def last_query(messages: Sequence[tuple[str, str]], style: Style = SPECIFIED) -> int:
    """Returns the index of the last user turn that is not a tool response, else the last index."""
    for index in range(len(messages) - 1, -1, -1):
        role, content = messages[index]
        if role == "user" and not is_response(content, style):
            return index
    return len(messages) - 1


def is_response(content: str, style: Style = SPECIFIED) -> bool:
    """Returns whether the template treats this user turn as tool responses."""
    if style.trims == "all":
        content = content.strip()
    before, after = style.response_edges
    return content.startswith(before + RESPONSE_OPEN) and content.endswith(RESPONSE_CLOSE + after)


def is_bare(sample: Sample) -> bool:
    """Returns whether only the template writes a system turn: it has tools but no system text."""
    return bool(sample.tools) and [role for role, _ in sample.messages[:1]] != ["system"]


def is_following(sample: Sample, style: Style = SPECIFIED) -> bool:
    """Returns whether a query directly follows tool responses: two user turns in a row."""
    pairs = pairwise(sample.messages)
    return any(one == two == "user" and is_response(text, style) for (one, text), (two, _) in pairs)


def split_thought(content: str) -> tuple[str, str]:
    """Returns (thought, rest) of assistant text, split as the template splits it.

    The thought ends at the FIRST `</think>` and starts after the last `<think>` before it. The rest
    follows the LAST `</think>`.
    """
    if "</think>" not in content:
        return "", content
    head, _, _ = content.partition("</think>")
    thought = head.rstrip("\n").rpartition("<think>")[2].lstrip("\n")
    return thought, content.rpartition("</think>")[2].lstrip("\n")


def _shown_thought(
    content: str, *, after_query: bool, last: bool, style: Style = SPECIFIED
) -> tuple[str, str]:
    """Returns (think block, body) of an assistant turn; the block is "" if there is none."""
    thought, body = split_thought(content)
    if style.thoughts is not Thoughts.hybrid:
        thought = style.strip(thought)
        shown = (style.thoughts is Thoughts.every or after_query) and (thought or style.fills)
        return (_block(thought) if shown else ""), body
    if after_query and (last or thought):
        return _block(thought.strip("\n")), body.lstrip("\n")
    return "", body


def _block(thought: str) -> str:
    return f"<think>\n{thought}\n</think>\n\n"


_EMPTY_BLOCK = _block("")
_OF_ANSWERS = ("thoughts", "answers", "calls")


class _Writer:
    """Collects the pieces of the text and the positions of turns and control tokens."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.pieces: list[str] = []
        self.length = 0
        self.control: list[tuple[int, str]] = []
        self.answers: list[tuple[int, int]] = []
        self.parts: list[Part] = []

    def text(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)

    def token(self, token: str) -> None:
        self.control.append((self.length, token))
        self.text(token)

    def marked(self, text: str, control: Sequence[tuple[int, str]]) -> None:
        """Appends text that has control tokens of the structure at the given offsets."""
        self.control += [(self.length + offset, token) for offset, token in control]
        self.text(text)

    def part(self, name: str, length: int) -> None:
        """Notes that the text written last, of this length, is a part."""
        if length:
            self.parts.append((name, self.length - length, self.length))

    def begin(self, role: str) -> None:
        markers = self.style.markers
        self.token(markers.begin)
        self.text(role)
        if markers.middle == "\n":
            self.text("\n")
        else:
            self.token(markers.middle)

    def end(self) -> None:
        self.token(self.style.markers.end)
        self.text("\n")

    def system(self, text: str | None, definitions: tuple[str, ...]) -> None:
        """Appends the system turn, unless the template writes none."""
        style = self.style
        block = tools_block(definitions, style.tools) if definitions else None
        is_framed = bool(style.preface) or style.tools.first
        if text is None and block is None and not is_framed:
            text = style.default_system
        lead = style.tools_lead if text is None and not is_framed else ""
        own = [] if text is None else [("system", text.strip() if style.trims == "all" else text)]
        listing = [("tools", block.text)] if block is not None else []
        parts = listing + own if style.tools.first else own + listing
        if is_framed:
            parts = [part for part in (("system", style.preface), *parts) if part[1]]
        if not parts and text is None:
            return
        self.begin("system")
        for number, (name, part) in enumerate(parts):
            self.text("\n\n" if number else lead)
            self.marked(part, block.control if block is not None and name == "tools" else ())
            self.part(name, len(part))
        self.end()

    def assistant(self, thought: str, body: str) -> None:
        self.begin("assistant")
        start = self.length
        if thought:
            closing = len(thought) - len("</think>\n\n")
            self.marked(thought, ((0, "<think>"), (closing, "</think>")))
            if thought != _EMPTY_BLOCK:
                self.part("thoughts", len(thought))
        tags: list[tuple[int, str]] = []
        for call in self.style.dialect.find(body, 0):
            tags += (call.start, "<tool_call>"), (call.end - len("</tool_call>"), "</tool_call>")
        self.marked(body, tags)
        self.body_parts(body, tags[0][0] if tags else len(body))
        self.end()
        self.answers.append((start, self.length - 1))

    def body_parts(self, body: str, calls: int) -> None:
        """Notes the parts of the text written last; a template may keep thoughts in it.

        `calls` is where its first call begins.
        """
        first = 0
        if "</think>" in body and body.lstrip().startswith("<think>"):
            rest = body.partition("</think>")[2].lstrip("\n")
            first = min(len(body) - len(rest), calls)
        begin = self.length - len(body)
        borders = (0, first, calls, len(body))
        for name, (start, end) in zip(_OF_ANSWERS, pairwise(borders), strict=True):
            if start < end:
                self.parts.append((name, begin + start, begin + end))

    def rendering(self) -> Rendering:
        text = "".join(self.pieces)
        return Rendering(text, tuple(self.answers), tuple(self.control), tuple(self.parts))


@lru_cache(maxsize=256)
def tools_block(definitions: tuple[str, ...], tools: ToolsText = SPECIFIED.tools) -> Rendering:
    """Returns the tools block of the system turn from the JSON texts of the definitions."""
    listing = "".join(f"\n{tools.write(text)}" for text in definitions)
    text = tools.begin + listing + tools.end
    tail = len(tools.begin) + len(listing)
    tokens = _STRUCTURE.finditer(tools.end)
    return Rendering(text, (), tuple((tail + token.start(), token[0]) for token in tokens))


_STRUCTURE = re.compile("|".join(map(re.escape, STRUCTURE_TOKENS)))


def _response_tags(content: str, style: Style) -> list[tuple[int, str]]:
    """Returns (offset, tag) of a turn that consists of `<tool_response>` blocks, else nothing."""
    if not is_response(content, style):
        return []
    tags: list[tuple[int, str]] = []
    before, after = style.response_edges
    position, length = len(before), len(content) - len(after)
    while content.startswith(f"{RESPONSE_OPEN}\n", position):
        closes = content.find(f"\n{RESPONSE_CLOSE}", position + len(RESPONSE_OPEN) + 1) + 1
        if not closes:
            return []
        tags += [(position, RESPONSE_OPEN), (closes, RESPONSE_CLOSE)]
        position = closes + len(RESPONSE_CLOSE)
        if position == length:
            return tags
        if content[position] != "\n":
            return []
        position += 1
    return []


# Determines parity with inference: is a turn trained after the bytes that a server renders?

MODES = {"thinking": True, "non-thinking": False}
"""{mode of inference: its value of `enable_thinking`}."""

ASSISTANT = SPECIFIED.assistant
"""The header of an assistant turn in ChatML."""

Spans = tuple[tuple[int, int], ...]


def spans(rendering: Rendering, prompt: str, header: str = ASSISTANT) -> Spans:
    """Returns [start, end) of each assistant turn's trained text, after the generation prompt.

    `prompt` is the generation prompt of the mode, which begins with the `header`. A turn that does
    not start with all of it (only the last turn has the empty think block) is trained from right
    after its header.
    """
    tail = prompt.removeprefix(header)
    return tuple(
        (start + len(tail) if rendering.text.startswith(tail, start) else start, end)
        for start, end in rendering.answers
    )


def in_parity(
    messages: Sequence[tuple[str, str]],
    rendering: Rendering,
    prompts: Mapping[str, str],
    style: Style,
    thoughts: Sequence[str] = (),
) -> tuple[frozenset[str], ...]:
    """Returns, for each assistant turn, the modes in which it is in parity.

    `prompts` maps each mode to its generation prompt; `thoughts` are those beside the messages.
    """
    hides = style.thoughts in (Thoughts.hybrid, Thoughts.current)  # a later query hides thoughts
    same = _same_context(messages, style, thoughts) if hides else [True] * len(rendering.answers)
    begins = [start - len(style.assistant) for start, _ in rendering.answers]
    return tuple(
        frozenset(mode for mode in prompts if rendering.text.startswith(prompts[mode], begin))
        if equal
        else frozenset()
        for equal, begin in zip(same, begins, strict=True)
    )


def _same_context(
    messages: Sequence[tuple[str, str]], style: Style = SPECIFIED, thoughts: Sequence[str] = ()
) -> list[bool]:
    """Returns for each assistant turn whether later messages leave its context unchanged."""
    whole = last_query(messages, style)
    always = style.thoughts is Thoughts.current and style.fills
    thoughtful: list[int] = []
    same: list[bool] = []
    query: int | None = None
    for at, (role, content) in enumerate(messages):
        if role == "user" and not is_response(content, style):
            query = at
        if role != "assistant":
            continue
        # Without a query the template uses the last index.
        alone = at - 1 if query is None else query
        low, high = sorted((alone, whole))
        # A thought between the two boundaries is shown in one rendering and hidden in the other.
        equal = bisect_right(thoughtful, high) == bisect_right(thoughtful, low)
        if equal and at and messages[at - 1][0] == "assistant":
            before = messages[at - 1][1]
            equal = _shown_thought(before, after_query=at - 1 > alone, last=True) == _shown_thought(
                before, after_query=at - 1 > whole, last=False
            )
        same.append(equal)
        beside = bool(thoughts and thoughts[at])
        if always or beside or _shown_thought(content, after_query=True, last=False)[0]:
            thoughtful.append(at)
    return same


def counts(turns: Sequence[frozenset[str]]) -> dict[str, int]:
    """Returns {mode: number of turns in parity} for every mode."""
    return {mode: sum(mode in modes for modes in turns) for mode in MODES}


# -- counts the tokens of each part of a rendering -------------------------------------------------

PARTS = ("system", "tools", "user", "results", "thoughts", "answers", "calls", "template")
"""The parts of a rendering, in the order in which they are shown.

tools     the block of the definitions, with its instructions
results   the turns of tool responses, with their tags
thoughts  the blocks that have a thought
calls     of assistant turns, from the first call on
template  everything else: the markers of turns, empty think blocks
"""


def tokens_by_part(rendering: Rendering, tokens: TokenSequence) -> dict[str, int]:
    """Returns {part: tokens that begin in it}, without the parts that have none."""
    sizes = tokens.inside_each([(start, end) for _, start, end in rendering.parts])
    counts: Counter[str] = Counter(template=len(tokens) - sum(sizes))
    for (name, _, _), size in zip(rendering.parts, sizes, strict=True):
        counts[name] += size
    return {name: counts[name] for name in PARTS if counts[name]}
