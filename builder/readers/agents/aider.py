"""Reads the histories of Aider. Source: docs/formats/aider.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Event,
    Message,
    Part,
    Reasoning,
    Text,
    Unparsed,
)
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import as_harness
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.places import unique_name
from builder.sources.source import Source
from builder.sources.stream import STREAM_ERRORS, stream_problem

# -- .aider.chat.history.md -----------------------------------------------------------------------

_NAME = "aider"
_HEADER = re.compile(rb"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ \t]*\r?$", re.M)

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_TOKENS = re.compile(r"> Tokens: [\d.,]+[kM]? sent")
_MODEL = re.compile(r"(Main model|Models?|Editor model): (\S+?),?(?: with|$)")
_VERSION = re.compile(r"Aider v(\d[\w.]*)")
_COMMAND = re.compile(r"/(\S+)\s*(.*)", re.DOTALL)
_PROMPTS = frozenset({"ask", "code", "architect", "context", "help"})
"""Commands whose argument is sent to the model."""
_NEW_CHAT = frozenset({"clear", "reset"})
_NOT_LOGGED = re.compile(
    r"Restored previous conversation history|Added \d+ lines? of output to the chat"
)
"""What the program says when it adds messages to the chat that the file does not have."""
_THOUGHT = re.compile(
    r"\s*<(thinking-content-[0-9a-f]+)>(?P<tagged>.*?)(?:</\1>|\Z)(?P<answer>.*)"
    r"|(?:-+\n)?\s*► \*\*THINKING\*\*(?P<titled>.*?)(?:(?:-+\n)?► \*\*ANSWER\*\*|\Z)(?P<after>.*)",
    re.DOTALL,
)


@dataclass(slots=True)
class _HistoryBlock:
    """Lines of one kind: user, output (of the program) or answer; where it begins.

    `is_mixed`: an answer may contain output of the program, which is not marked in every line.
    `is_quoting`: so may one with quotations, unless the count of its tokens follows: the program
    writes nothing between the two.
    """

    kind: str
    line: int
    lines: list[str] = field(default_factory=list)
    is_mixed: bool = False
    is_quoting: bool = False

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n").rstrip()


def blocks(lines: Iterable[str]) -> Iterator[_HistoryBlock]:
    """Yields the blocks of a session.

    The program ends each line of the user and the last one of its own output with two spaces, which
    tells them from headings and quotations of the model. A message of the user and an answer each
    begin after an empty line; what follows output without one belongs to it. Inside a code block
    only the program's count of tokens, or a stop by the user, ends an answer.
    """
    block = _HistoryBlock("", 0)
    fence = ""
    doubtful = False  # whether the open code block contains lines like those of a user
    gap = True  # whether an empty line precedes
    is_cut_off = False  # whether the block follows output that may go on in it
    for number, line in enumerate(lines):
        is_marked = line.endswith("  ") or line.rstrip() == ">"
        kind = "answer"
        if is_marked and line.startswith("#### "):
            kind = "user"
        elif is_marked and line.startswith(">"):
            kind = "output"
        if fence and kind != "answer" and not (_TOKENS.match(line) or line.startswith("> ^C")):
            kind, doubtful = "answer", True
        if kind == "answer" and block.kind != "answer":
            if not line.strip():
                gap = True
                continue
            if block.kind == "output" and not gap:
                kind = "output"
        if kind != block.kind or (kind == "user" and gap):
            block.is_mixed |= bool(fence) and doubtful
            if is_cut_off and kind == "output" and block.lines[-1].strip():
                block.kind = "output"  # an empty line follows each answer
            yield block
            is_cut_off = block.kind == "output" and not block.lines[-1].endswith(("  ", ">"))
            block = _HistoryBlock(kind, number, is_mixed=kind == "answer" and is_cut_off)
            fence, doubtful = "", False
        gap = False
        if kind == "user":
            block.lines.append(line[5:].rstrip(" "))
            continue
        block.lines.append(line)
        if kind == "answer":
            if not fence and line.startswith("> "):
                block.is_mixed |= len(block.lines) == 1
                block.is_quoting = True
            fence = _fence(line, fence)
    block.is_mixed |= bool(fence) and doubtful
    yield block


def _fence(line: str, open_fence: str) -> str:
    found = _FENCE.match(line)
    if found is None:
        return open_fence
    if not open_fence:
        return found[1]
    closes = found[1].startswith(open_fence) and not found[2].strip()
    return "" if closes else open_fence


def _read_session(scope: str, name: str, where: str, lines: list[str]) -> Iterator[Event]:
    """Yields the conversations of a session.

    They are one, one more for each time that it was cleared, and one for each answer of an editor.
    """
    session = _Session(scope, name, where)
    found = list(blocks(lines))
    for at, block in enumerate(found):
        if block.kind == "output":
            session.read_output(block.text)
        elif block.kind == "user":
            session.read_user("" if block.text == "<blank>" else block.text)
        elif block.kind == "answer" and block.text:
            session.read_answer(found, at)
    names: Counter[str] = Counter()
    for number, history in enumerate([session.main, *session.editors]):
        records = 1 if number == 0 else 0
        yield from history.conversations(records, names=names, version=session.version)


@dataclass(slots=True)
class _Session:
    """A session as far as it is read.

    history   the conversation to which the next answer belongs: `main`, or that of an editor
    argument  what a command asks, if the program does not write the message that it sends
    answer    the text of the answer since the last message of a user
    lacking   what of its context the file lacks, besides what it always lacks
    """

    scope: str
    name: str
    where: str
    main: SessionHistory = field(init=False)
    history: SessionHistory = field(init=False)
    editors: list[SessionHistory] = field(default_factory=list)
    model: str | None = None
    editor_model: str | None = None
    version: str | None = None
    asked: bool = False
    argument: str = ""
    answer: str = ""
    lacking: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.main = self.history = SessionHistory(_NAME, self.name, self.scope)

    def read_output(self, text: str) -> None:
        """Takes models and version from the program's output, and what it adds to the chat."""
        for kind, model in _MODEL.findall(text):
            if kind == "Editor model":
                self.editor_model = model
            else:
                self.model, self.editor_model = model, None
        self.version = next((one[1] for one in _VERSION.finditer(text)), self.version)
        if _NOT_LOGGED.search(text):
            self.lacking.add("history")

    def read_user(self, prompt: str) -> None:
        """Takes a prompt, a command or what the program wrote in the user's place.

        A command that asks is followed by the message that it sends. In architect mode the answer
        is the message that an editor gets, in a chat of its own.
        """
        self.history, self.argument = self.main, ""
        if self.answer and prompt.split() == self.answer.split():
            self.history = SessionHistory(_NAME, self.name, self.scope)
            self.editors.append(self.history)
        elif command := _COMMAND.fullmatch(prompt):
            if command[1] in _NEW_CHAT:
                self.main.replace()
                self.lacking.clear()
            self.argument = command[2].strip() if command[1] in _PROMPTS else ""
            prompt = ""
        self.answer = ""
        self.asked = bool(prompt.strip() or self.argument)
        if prompt.strip():
            self.history.append(Message("user", (Text(prompt),)), self.where)

    def read_answer(self, found: list[_HistoryBlock], at: int) -> None:
        """Takes the answer that is the block `at` of those found."""
        block = found[at]
        if self.argument:
            self.history.append(Message("user", (Text(self.argument),)), self.where)
        parts = tuple(_answer_parts(block.text))
        self.answer = "".join(part.text for part in parts if isinstance(part, Text))
        untrained = None if self.asked else "second_answer"
        is_counted = at + 1 < len(found) and _TOKENS.match(found[at + 1].lines[0])
        if block.is_mixed or (block.is_quoting and not (self.asked and is_counted)):
            parts = (Unparsed(block.text, "flattened"),)
        elif _is_stopped(found, at):
            untrained = "aborted"
        self.asked, self.argument = False, ""
        is_main = self.history is self.main
        context = Context.lacking({"system", "reminders", *(self.lacking if is_main else ())})
        turn = f"{self.where} {block.line}"
        model = self.model if is_main else self.editor_model or self.model
        message = Message("assistant", parts, turn, untrained=untrained, context=context)
        self.history.append(message, self.where, RequestHead(tools=(), model=model))


def _is_stopped(found: list[_HistoryBlock], at: int) -> bool:
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


def _answer_parts(text: str) -> Iterator[Part]:
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


# -- files of --llm-history-file ------------------------------------------------------------------

_REQUEST = re.compile(rb"^TO LLM (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[ \t]*\r?$", re.M)
_RESPONSE = re.compile(r"^LLM RESPONSE \d{4}-\d\d-\d\dT[\d:]+[ \t]*\r?$", re.M)
_ROLE = re.compile(r"([A-Z]+) ?(.*)", re.DOTALL)


def _read_exchange(number: int, name: str, text: str, written: set[str]) -> Iterator[Event]:
    """Yields the conversation of a request; `written` are the answers so far, and is extended.

    Assistant messages of the request that are no answer of this log are the program's own: examples
    and `Ok.`
    """
    where = f"request {number}"
    request, *responses = _RESPONSE.split(text)
    messages = list(_messages(request))
    answers = [body for body in map(_unmarked, responses) if body[1].strip()]
    if not answers:
        yield Problem("no_response", where, "the request has no answer")
        return
    found: list[Message] = []
    for message in messages:
        if message.role != "assistant":
            found.append(message)
            continue
        text = "".join(part.text for part in message.parts if isinstance(part, Text))
        code = REPEAT if text.strip() in written else "inserted"
        if code == "inserted" and found and found[-1].role == "user":
            found[-1] = replace(found[-1], parts=as_harness(found[-1].parts))
        found.append(replace(message, untrained=code))
    text = answers[-1][1].strip("\n")
    parts = tuple(_answer_parts(text))
    written.add("".join(part.text for part in parts if isinstance(part, Text)).strip())
    found.append(Message("assistant", parts))
    yield Conversation(
        id=name,
        record=where,
        messages=tuple(found),
        tools=(),
        records=1,
        recorded=True,
        context=Context("rendered"),
    )


def _messages(text: str) -> Iterator[Message]:
    for block in re.split(r"^-------[ \t]*\r?$", text, flags=re.M):
        role, body = _unmarked(block)
        if role:
            yield Message(role, (Text(body),) if body.strip() else ())


def _unmarked(block: str) -> tuple[str, str]:
    """Returns (role, text) of lines that each begin with the role; ("", "") without lines."""
    role = ""
    lines = []
    for line in block.strip("\r\n").split("\n"):
        found = _ROLE.fullmatch(line.rstrip("\r"))
        if found is None or (role and found[1] != role):
            lines.append(line)
            continue
        role = role or found[1]
        lines.append(found[2])
    return role.lower(), "\n".join(lines) if role else ""


# -- both -----------------------------------------------------------------------------------------


def _recognise(source: Source) -> str | None:
    """Claims Markdown with the header of a session, and requests with their time."""
    if source.peek.kind not in ("text", "jsonl"):
        return None
    if _REQUEST.match(source.head.lstrip()):
        return "requests (TO LLM …)"
    # `re` would look at the beginning of each line for a pattern that begins with `^`.
    is_log = b"# aider chat started at " in source.head and _HEADER.search(source.head)
    return "sessions (# aider chat started at …)" if is_log else None


def _read(source: Source) -> Iterator[Event]:
    try:
        data = source.whole()
    except STREAM_ERRORS as error:
        source.count_records()
        yield stream_problem(error, "file")
        return
    if len(data) > source.max_record_bytes:
        source.count_records()
        yield Problem("too_large", "file", f"more than {source.max_record_bytes} bytes")
        return
    is_requests = _REQUEST.match(data.lstrip()) is not None
    heads = list((_REQUEST if is_requests else _HEADER).finditer(data))
    names: Counter[str] = Counter()
    written: set[str] = set()
    ends = [head.start() for head in heads[1:]] + [len(data)] * bool(heads)
    if data[: heads[0].start() if heads else None].strip():
        source.count_records()
        yield Problem("truncated", "line 1", "the beginning of the session is missing")
    for number, (head, end) in enumerate(zip(heads, ends, strict=True), start=1):
        source.count_records()
        where = f"request {number}" if is_requests else f"session {number}"
        try:
            text = data[head.end() : end].decode("utf-8")
        except UnicodeDecodeError as error:
            yield Problem("bad_utf8", where, str(error))
            continue
        name = unique_name(head[1].decode(), names)
        if is_requests:
            yield from _read_exchange(number, name, text, written)
        else:
            lines = [one.removesuffix("\r") for one in text.split("\n")]
            yield from _read_session(f"{source.name}/{name}", name, where, lines)


READER = declared(_NAME, recognise=_recognise, read=_read)
