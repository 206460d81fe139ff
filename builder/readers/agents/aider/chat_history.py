"""Reads `.aider.chat.history.md`. Source: docs/formats/aider.md, "Chat history"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from builder.conversation import (
    Context,
    Conversation,
    Ignored,
    Message,
    Part,
    Reasoning,
    Text,
    Unparsed,
)
from builder.readers.toolkit.history import RequestHead, SessionHistory

NAME = "aider"
HEADER = re.compile(rb"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ \t]*\r?$", re.M)

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_TOKENS = re.compile(r"> Tokens: [\d.,]+[kM]? sent")
_MODEL = re.compile(r"(?:Main model|Models?): (\S+?),?(?: with|$)")
_VERSION = re.compile(r"Aider v(\d[\w.]*)")
_COMMAND = re.compile(r"/(\S+)\s*(.*)", re.DOTALL)
_PROMPTS = frozenset({"ask", "code", "architect", "context", "help"})
"""Commands whose argument is sent to the model."""
_NEW_CHAT = frozenset({"clear", "reset"})
_THOUGHT = re.compile(
    r"\s*<(thinking-content-[0-9a-f]+)>(?P<tagged>.*?)(?:</\1>|\Z)(?P<answer>.*)"
    r"|(?:-+\n)?\s*► \*\*THINKING\*\*(?P<titled>.*?)(?:(?:-+\n)?► \*\*ANSWER\*\*|\Z)(?P<after>.*)",
    re.DOTALL,
)


@dataclass(slots=True)
class HistoryBlock:
    """Lines of one kind: user, output (of the program) or answer; where it begins.

    `is_mixed`: an answer may contain output of the program, which is not marked in every line.
    """

    kind: str
    line: int
    lines: list[str] = field(default_factory=list)
    is_mixed: bool = False

    @property
    def text(self) -> str:
        """Returns the lines as one text."""
        return "\n".join(self.lines).strip("\n").rstrip()


def blocks(lines: Iterable[str]) -> Iterator[HistoryBlock]:
    """Yields the blocks of a session.

    The program ends each line of the user and of its own with two spaces, which tells them from
    headings and quotations of the model. Inside a code block only the program's count of tokens,
    or a stop by the user, ends an answer.
    """
    block = HistoryBlock("", 0)
    fence = ""
    doubtful = False  # whether the open code block contains lines like those of a user
    for number, line in enumerate(lines):
        is_marked = line.endswith("  ") or line.rstrip() == ">"
        kind = "answer"
        if is_marked and line.startswith("#### "):
            kind = "user"
        elif is_marked and line.startswith(">"):
            kind = "output"
        if fence and kind != "answer" and not (_TOKENS.match(line) or line.startswith("> ^C")):
            kind, doubtful = "answer", True
        if kind != block.kind:
            if not line.strip() and kind == "answer":
                continue
            block.is_mixed |= bool(fence) and doubtful
            yield block
            block = HistoryBlock(kind, number)
            fence, doubtful = "", False
        if kind == "user":
            block.lines.append(line[5:].rstrip(" "))
            continue
        block.lines.append(line)
        if kind == "answer":
            block.is_mixed |= not fence and line.startswith("> ")
            fence = _fence(line, fence)
    block.is_mixed |= bool(fence) and doubtful
    yield block


def _fence(line: str, open_fence: str) -> str:
    """Returns the fence that is open after the line, or ""."""
    found = _FENCE.match(line)
    if found is None:
        return open_fence
    if not open_fence:
        return found[1]
    closes = found[1].startswith(open_fence) and not found[2].strip()
    return "" if closes else open_fence


def read_session(
    scope: str, name: str, where: str, lines: list[str]
) -> Iterator[Conversation | Ignored]:
    """Yields the conversations of a session: one, and one for each time that it was cleared."""
    history = SessionHistory(NAME, name, scope)
    missing = {"system", "reminders"}
    model: str | None = None
    version: str | None = None
    asked = False
    found = list(blocks(lines))
    for at, block in enumerate(found):
        if block.kind == "output":
            text = block.text
            model = next((one[1] for one in _MODEL.finditer(text)), model)
            version = next((one[1] for one in _VERSION.finditer(text)), version)
            if "Restored previous conversation history" in text:
                missing.add("history")
        elif block.kind == "user":
            prompt = block.text if block.text != "<blank>" else ""
            if command := _COMMAND.fullmatch(prompt):
                if command[1] in _NEW_CHAT:
                    history.replace()
                    missing.discard("history")
                prompt = command[2].strip() if command[1] in _PROMPTS else ""
            asked = bool(prompt.strip())
            if asked:
                history.append(Message("user", (Text(prompt),)), where)
        elif block.kind == "answer" and block.text:
            parts = tuple(answer_parts(block.text))
            untrained = None if asked else "second_answer"
            if block.is_mixed:
                parts = (Unparsed(block.text, "flattened"),)
            elif _is_stopped(found, at):
                untrained = "aborted"
            asked = False
            context = Context.lacking(missing)
            turn = f"{where} {block.line}"
            message = Message("assistant", parts, turn, untrained=untrained, context=context)
            history.append(message, where, RequestHead(tools=(), model=model))
    yield from history.conversations(1, version=version)


def _is_stopped(found: list[HistoryBlock], at: int) -> bool:
    """Returns whether the user stopped an answer: before the count of its tokens."""
    for step in (-1, 1):
        near = at + step
        while 0 <= near < len(found) and found[near].kind == "output":
            lines = found[near].lines if step > 0 else list(reversed(found[near].lines))
            for line in lines:
                if _TOKENS.match(line):
                    break
                if line.startswith("> ^C"):
                    return True
            near += step
    return False


def answer_parts(text: str) -> Iterator[Part]:
    """Yields the thoughts and the text of an answer."""
    found = _THOUGHT.match(text)
    if found is None:
        yield Text(text)
        return
    thought = (found["tagged"] or found["titled"] or "").strip()
    rest = (found["answer"] or found["after"] or "").strip("\n")
    if thought:
        yield Reasoning(thought)
    if rest.strip():
        yield Text(rest)
