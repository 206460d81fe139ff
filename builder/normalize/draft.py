"""The draft: a conversation on its way to a dialogue, as the normaliser's steps pass it on.

A draft is a list of blocks. A user block is a user turn; an assistant block is an assistant turn
with the results that were logged for its calls, so that a call and its answer cannot be parted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_

from builder.conversation import (
    Conversation,
    Data,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.jsonio import dumps
from builder.problem import Problem


@dataclass(frozen=True, slots=True)
class DraftCall:
    """A call on its way. `ordinal` is its position among the conversation's calls, from 0.

    `arguments` is as logged until they are decoded, `written` their JSON text once they hold no
    more than may be written; `answer` is the text that answered it, None until (or unless) one was
    found.
    """

    ordinal: int
    name: str
    arguments: Json
    id: str | None = None
    answer: str | None = None
    written: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """One user or assistant turn.

    `harness`: the texts were put there by the agent program. `text_last`: pieces of text that
    stood after a call. `results` are those logged for this turn, in logged order. `fault` is the
    code of something in the turn that could not be parsed.
    """

    role: str
    turn: str | None = None
    texts: tuple[str, ...] = ()
    harness: bool = False
    reasoning: tuple[str, ...] = ()
    calls: tuple[DraftCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    text_last: int = 0
    fault: str | None = None

    @property
    def content(self) -> str:
        """Its pieces of text as one, joined with a blank line."""
        return "\n\n".join(self.texts)


@dataclass(frozen=True, slots=True)
class Draft:
    """All that the steps hand on; each returns a new one, or the Problem that ends it.

    `called` holds name and arguments of all calls that can be read, also of those left out later:
    definitions are inferred from them. `changes` counts alterations by code, `dropped` holds the
    code of each call left out, `cut` is the reason for which turns were cut, if any. `tools_source`
    is that of `tools` until the step `tools` says it of all definitions.
    """

    blocks: tuple[Block, ...]
    system: tuple[str, ...] = ()
    called: tuple[tuple[str, dict[str, Json]], ...] = ()
    tools: tuple[Json, ...] | None = None
    tools_source: str = "none"
    reasoning: str = "none"
    changes: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[int, str] = field(default_factory=dict)
    cut: Problem | None = None
    complete: bool = False

    def counting(self, **codes: int) -> Draft:
        """The draft with the codes added to its changes; a count of 0 leaves no trace."""
        added = {code: self.changes.get(code, 0) + n for code, n in codes.items() if n}
        return replace(self, changes={**self.changes, **added}) if added else self

    def having(self, blocks: Sequence[Block], counts: Mapping[str, int] | None = None) -> Draft:
        """The draft with these blocks, the counts added; itself if nothing is new, as mostly."""
        draft = self.counting(**counts) if counts else self
        if len(blocks) == len(self.blocks) and all(map(is_, blocks, self.blocks)):
            return draft
        return replace(draft, blocks=tuple(blocks))

    def dropping(self, calls: Iterable[DraftCall], code: str) -> Draft:
        """The draft with the calls recorded as left out for `code`."""
        added = {call.ordinal: code for call in calls}
        return replace(self, dropped={**added, **self.dropped}) if added else self


def calls_in(blocks: Iterable[Block]) -> list[DraftCall]:
    """All calls of the blocks, in order."""
    return [call for block in blocks for call in block.calls]


def read_draft(conversation: Conversation, *, media: str) -> Draft | Problem:
    """The draft of a conversation: roles settled, messages of one turn in one block.

    developer → system (`developer_role`). Leading system messages are kept apart, a later one is
    the Problem `late_system`, an unknown role `unknown_role`. Harness text beside other text is
    left out (`harness_text`). Media become `[image]` (`media`) or are the Problem `media`.
    """
    reader = _Reading(media)
    for message in conversation.messages:
        problem = reader.take(message)
        if problem is not None:
            return problem
    reader.settle()
    changes = dict(conversation.changes)
    draft = Draft(
        blocks=tuple(reader.blocks),
        system=tuple(reader.system),
        tools=conversation.tools,
        tools_source=conversation.tools_source or "logged",
        changes=changes,
        complete=conversation.complete,
    )
    return draft.counting(**reader.counts).dropping(reader.misplaced, "not_by_assistant")


class _Reading:
    """The state of one pass over the messages."""

    def __init__(self, media: str) -> None:
        self.media = media
        self.blocks: list[Block] = []
        self.system: list[str] = []
        self.counts: dict[str, int] = {}
        self.misplaced: list[DraftCall] = []
        self.ordinal = 0
        self.asked: int | None = None
        """Where the last assistant block stands: results are for it, for none before it."""
        self.results: list[ToolResult] = []
        """Those that came for it and are not in it yet."""

    def count(self, code: str, n: int = 1) -> None:
        self.counts[code] = self.counts.get(code, 0) + n

    def take(self, message: Message) -> Problem | None:
        if self.media == "reject" and any(_has_media(part) for part in message.parts):
            return Problem("media", "message", "holds an image or other media", records=0)
        if message.role != "assistant":
            for part in message.parts:
                if isinstance(part, ToolCall):
                    self.misplaced.append(self._call(part))
        match message.role:
            case "system" | "developer":
                return self._system(message)
            case "user" | "tool":
                self._results(message)
                self._user(message)
            case "assistant":
                self._assistant(message)
            case role:
                return Problem("unknown_role", "message", f"role {role[:40]!r}", records=0)
        return None

    def _call(self, part: ToolCall) -> DraftCall:
        self.ordinal += 1
        return DraftCall(self.ordinal - 1, part.name, part.arguments, part.id)

    def _system(self, message: Message) -> Problem | None:
        texts = self._texts(message.parts)
        harness = [part for part in message.parts if isinstance(part, Text) and part.harness]
        if harness:
            self.count("harness_text", len(harness))
        if not texts:
            return None
        if any(not block.harness for block in self.blocks):
            return Problem("late_system", "message", "a system message after the first turn", 0)
        if message.role == "developer":
            self.count("developer_role")
        self.system.extend(texts)
        return None

    def _results(self, message: Message) -> None:
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        if message.role == "tool" and not results:
            plain = tuple(part for part in message.parts if isinstance(part, Text | Data | Media))
            results = [ToolResult(plain)] if plain else []
        for result in results:
            if self.asked is None or not self.blocks[self.asked].calls:
                self.count("orphan_result")
            else:
                self.results.append(result)

    def settle(self) -> None:
        """Hand the results that came to the block that they are for."""
        if self.asked is not None and self.results:
            block = self.blocks[self.asked]
            self.blocks[self.asked] = replace(block, results=(*block.results, *self.results))
            self.results.clear()

    def _user(self, message: Message) -> None:
        if message.role == "tool":
            return
        texts = self._texts(message.parts)
        harness = [part.text for part in message.parts if isinstance(part, Text) and part.harness]
        if texts:
            self.blocks.append(Block("user", turn=message.turn, texts=tuple(texts)))
        elif any(text.strip() for text in harness):
            block = Block("user", turn=message.turn, texts=tuple(harness), harness=True)
            self.blocks.append(block)
            return
        if harness:
            self.count("harness_text", len(harness))
        elif not texts and not any(isinstance(part, ToolResult) for part in message.parts):
            self.count("empty_user")

    def _assistant(self, message: Message) -> None:
        texts: list[str] = []
        calls: list[DraftCall] = []
        thoughts: list[str] = []
        results: list[ToolResult] = []
        fault: str | None = None
        last = 0
        for part in message.parts:
            match part:
                case ToolCall():
                    calls.append(self._call(part))
                case Reasoning(text=text):
                    thoughts.append(text)
                case Unparsed(code=code):
                    fault = fault or code
                case Text(harness=True):
                    self.count("harness_text")
                case ToolResult():
                    results.append(part)
                case _:
                    found = self._texts((part,))
                    texts += found
                    last += len(found) if calls else 0
        if message.untrained is not None:
            self.count("untrained_turn")
        self._append(
            Block(
                "assistant",
                turn=message.turn,
                texts=tuple(texts),
                reasoning=tuple(thoughts),
                calls=tuple(calls),
                results=tuple(results),
                text_last=last,
                fault=fault,
            )
        )

    def _append(self, block: Block) -> None:
        """Add an assistant block, or make it one with the last where the log says so."""
        self.settle()
        at = len(self.blocks) - 1
        last = self.blocks[at] if at >= 0 else None
        if last is None or last.role != "assistant":
            self.asked = len(self.blocks)
            self.blocks.append(block)
            return
        same = block.turn is not None and block.turn == last.turn
        no_ids = block.turn is None and last.turn is None
        if same or (no_ids and not last.results):
            if no_ids:
                self.count("assistant_joined")
            self.blocks[at] = join(last, block)
        else:
            self.asked = len(self.blocks)
            self.blocks.append(block)

    def _texts(self, parts: Iterable[Part]) -> list[str]:
        """The words that are not the harness's, one string a part; blank ones left out."""
        texts = []
        for part in parts:
            match part:
                case Text(text=text, harness=False) if text.strip():
                    texts.append(text)
                case Unparsed(text=text) if text.strip():
                    texts.append(text)
                case Media() | Data():
                    texts.append(part_text(part))
                    self.count("media" if isinstance(part, Media) else "json_text")
                case Text(text=text, harness=False) if text:
                    self.count("blank_text")
                case _:
                    pass
        return texts


def join(first: Block, second: Block) -> Block:
    """Two assistant blocks as one turn, their parts in order."""
    moved = len(second.texts) if first.calls else second.text_last
    return replace(
        first,
        texts=first.texts + second.texts,
        reasoning=first.reasoning + second.reasoning,
        calls=first.calls + second.calls,
        results=first.results + second.results,
        text_last=first.text_last + moved,
        fault=first.fault or second.fault,
    )


def part_text(part: Text | Data | Media) -> str:
    """A part of a message or a result as text: `[image]` for media, JSON text for a value."""
    match part:
        case Text(text=text):
            return text
        case Data(value=value):
            return dumps(value)
        case Media(kind=kind):
            return f"[{kind}]"


def _has_media(part: Part) -> bool:
    if isinstance(part, ToolResult):
        return any(isinstance(item, Media) for item in part.content)
    return isinstance(part, Media)
