"""The draft: a conversation on its way to a dialogue, as the normaliser's steps pass it on.

A draft is a list of blocks. A user block is a user turn; an assistant block is an assistant turn
with the results that were logged for its calls, so that no step can separate a call from its
answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_

from builder.conversation import (
    REPEAT,
    Context,
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
from builder.normalize.context import UNKNOWN, derived_context, lowest
from builder.normalize.options import NormalizeOptions
from builder.problem import Problem


@dataclass(frozen=True, slots=True)
class DraftCall:
    """A call being normalised. `ordinal` is its position among the conversation's calls, from 0.

    `arguments` are as logged until they are decoded, `written` their JSON text once their
    characters are clean; `answer` is the text of its result, None until (or unless) one was found;
    `failure` is error, denied or interrupted if the call went wrong, else None.
    """

    ordinal: int
    name: str
    arguments: Json
    id: str | None = None
    answer: str | None = None
    written: str = ""
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """One system, user or assistant turn; the leading system text is not a block.

    harness    user: all of its text was put there by the agent program
    text_last  assistant: number of text parts that stood after a call
    results    assistant: the results logged for this turn, in logged order
    fault      assistant: code of something in the turn that could not be parsed
    untrained  assistant: why the turn is no target (`Message.untrained`), or None
    context    assistant: how well the log shows its context, where its message has one
    hidden     assistant: codes of what its context held and a sample cannot show
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
    untrained: str | None = None
    context: Context | None = None
    hidden: tuple[str, ...] = ()

    def context_in(self, whole: Context) -> Context:
        """The context of an assistant block in a conversation whose context is `whole`."""
        own = self.context or whole
        hidden = [Context("partial", self.hidden)] if self.hidden else []
        return lowest([own, *hidden]) or own

    @property
    def content(self) -> str:
        """Its pieces of text as one, joined with a blank line."""
        return "\n\n".join(self.texts)


@dataclass(frozen=True, slots=True)
class Draft:
    """The state that the steps pass on; each returns a new one, or the Problem that ends it.

    `called` holds name and arguments of all readable calls, also of those left out later:
    definitions are inferred from them. `changes` counts alterations by code, `dropped` maps each
    call left out to its code, `cut` is the reason for which turns were cut, if any. `tools_source`
    describes the logged `tools` until the step `tools` sets it for all definitions. `context` is
    that of turns whose block has none of its own.
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
    recorded: bool = False
    version: str | None = None
    context: Context = UNKNOWN

    def counting(self, **codes: int) -> Draft:
        """The draft with the codes added to its changes; a count of 0 leaves no trace."""
        added = {code: self.changes.get(code, 0) + n for code, n in codes.items() if n}
        return replace(self, changes={**self.changes, **added}) if added else self

    def having(self, blocks: Sequence[Block], counts: Mapping[str, int] | None = None) -> Draft:
        """The draft with these blocks and the counts added; itself if nothing changed."""
        draft = self.counting(**counts) if counts else self
        if len(blocks) == len(self.blocks) and all(map(is_, blocks, self.blocks)):
            return draft
        return replace(draft, blocks=tuple(blocks))

    def dropping(self, calls: Iterable[DraftCall], code: str) -> Draft:
        """The draft with the calls recorded as left out for `code`, unless they already are."""
        added = {call.ordinal: code for call in calls}
        return replace(self, dropped={**added, **self.dropped}) if added else self


def calls_in(blocks: Iterable[Block]) -> list[DraftCall]:
    """All calls of the blocks, in order."""
    return [call for block in blocks for call in block.calls]


def read_draft(conversation: Conversation, options: NormalizeOptions) -> Draft | Problem:
    """Make the draft of a conversation: roles resolved, messages of one turn in one block.

    developer → system (`developer_role`). Leading system messages become the system text; a later
    one becomes a user turn (`late_system`), stays (`late_system_kept`) or is the Problem
    `late_system`. An unknown role is the Problem `unknown_role`. Harness text next to other text is
    left out (`harness_text`) under `harness: drop`. Media become `[image]` (`media`) or are the
    Problem `media`.
    """
    reader = _DraftReader(options)
    for message in conversation.messages:
        if (problem := reader.take(message)) is not None:
            return problem
    reader.attach_results()
    draft = Draft(
        blocks=tuple(reader.blocks),
        system=tuple(reader.system),
        tools=conversation.tools,
        tools_source=conversation.tools_source or "logged",
        changes=dict(conversation.changes),
        complete=conversation.complete,
        recorded=conversation.recorded,
        version=conversation.version,
        context=conversation.context or derived_context(conversation, bool(reader.system)),
    )
    return draft.counting(**reader.counts).dropping(reader.misplaced, "not_by_assistant")


class _DraftReader:
    """The state of one pass over the messages."""

    def __init__(self, options: NormalizeOptions) -> None:
        self.options = options
        self.drops_harness = options.harness == "drop"
        self.blocks: list[Block] = []
        self.system: list[str] = []
        self.counts: dict[str, int] = {}
        self.misplaced: list[DraftCall] = []
        self.ordinal = 0
        self.asked: int | None = None
        """Index of the last assistant block: results belong to it, to none before it."""
        self.results: list[ToolResult] = []
        """Results that came for that block and are not attached to it yet."""
        self.hidden: set[str] = set()

    def count(self, code: str, n: int = 1) -> None:
        self.counts[code] = self.counts.get(code, 0) + n

    def take(self, message: Message) -> Problem | None:
        media = any(_has_media(part) for part in message.parts)
        if media and self.options.media == "reject":
            return Problem("media", "message", "holds an image or other media", records=0)
        if message.role != "assistant":
            for part in message.parts:
                if isinstance(part, ToolCall):
                    self.misplaced.append(self._call(part))
        match message.role:
            case "system" | "developer":
                if (problem := self._system(message)) is not None:
                    return problem
            case "user" | "tool":
                self._results(message)
                self._user(message)
            case "assistant":
                self._assistant(message)
            case role:
                return Problem("unknown_role", "message", f"role {role[:40]!r}", records=0)
        if media:
            self.hidden.add("media")  # the turns after it saw what a sample cannot show
        return None

    def _call(self, part: ToolCall) -> DraftCall:
        self.ordinal += 1
        return DraftCall(self.ordinal - 1, part.name, part.arguments, part.id)

    def _system(self, message: Message) -> Problem | None:
        texts = self._texts(message.parts, harness=not self.drops_harness)
        harness = [part for part in message.parts if isinstance(part, Text) and part.harness]
        if harness and self.drops_harness:
            self.count("harness_text", len(harness))
        if not texts:
            return None
        is_late = any(not (block.harness and self.drops_harness) for block in self.blocks)
        policy = self.options.late_system
        if is_late and policy == "reject":
            return Problem("late_system", "message", "a system message after the first turn", 0)
        if message.role == "developer":
            self.count("developer_role")
        if is_late:
            self.count("late_system" if policy == "user" else "late_system_kept")
            role = "user" if policy == "user" else "system"
            self.blocks.append(Block(role, turn=message.turn, texts=tuple(texts)))
        else:
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

    def attach_results(self) -> None:
        """Attach the results that came to the block that they answer."""
        if self.asked is not None and self.results:
            block = self.blocks[self.asked]
            self.blocks[self.asked] = replace(block, results=(*block.results, *self.results))
            self.results.clear()

    def _user(self, message: Message) -> None:
        if message.role == "tool":
            return
        harness = [part.text for part in message.parts if isinstance(part, Text) and part.harness]
        texts = self._texts(message.parts, harness=not self.drops_harness)
        words = self._texts(message.parts, count=False) if harness else texts
        if not words and any(text.strip() for text in harness):
            block = Block("user", turn=message.turn, texts=tuple(texts or harness), harness=True)
            self.blocks.append(block)
            return
        if texts:
            self.blocks.append(Block("user", turn=message.turn, texts=tuple(texts)))
        if harness and self.drops_harness:
            self.count("harness_text", len(harness))
        elif not texts and not any(isinstance(part, ToolResult) for part in message.parts):
            self.count("empty_user")

    def _assistant(self, message: Message) -> None:
        texts: list[str] = []
        calls: list[DraftCall] = []
        thoughts: list[str] = []
        results: list[ToolResult] = []
        harness: list[str] = []
        fault: str | None = None
        untrained = message.untrained
        last = 0
        for part in message.parts:
            match part:
                case ToolCall():
                    calls.append(self._call(part))
                case Reasoning(text=text):
                    thoughts.append(text)
                case Unparsed(code="server_tool"):
                    untrained = "server_tool"
                case Text(text=text, harness=True):
                    harness.append(text)
                case ToolResult():
                    results.append(part)
                case _:
                    if isinstance(part, Unparsed):
                        fault = fault or part.code
                    found = self._texts((part,))
                    texts += found
                    last += len(found) if calls else 0
        is_inserted = not (texts or calls or thoughts or results or fault or untrained)
        if is_inserted and not self.drops_harness and any(text.strip() for text in harness):
            texts, untrained = harness, "inserted"  # the program spoke in the model's place
        elif harness:
            self.count("harness_text", len(harness))
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
                untrained=untrained,
                context=message.context,
                hidden=tuple(sorted(self.hidden)),
            )
        )
        if untrained == "server_tool":
            self.hidden.add("server_tool")

    def _append(self, block: Block) -> None:
        """Add an assistant block, or join it to the last one where they are one turn."""
        self.attach_results()
        asked = self.blocks[self.asked] if self.asked is not None else None
        if asked is not None and block.turn is not None and block.turn == asked.turn:
            assert self.asked is not None, "it has a block"
            self.blocks[self.asked] = join(asked, block)  # user text logged in between came after
            return
        last = self.blocks[-1] if self.blocks else None
        if last is not None and last.role == "assistant":
            no_ids = block.turn is None and last.turn is None
            if no_ids and not last.results:
                self.count("assistant_joined")
                self.blocks[-1] = join(last, block)
                return
        self.asked = len(self.blocks)
        self.blocks.append(block)

    def _texts(
        self, parts: Iterable[Part], *, harness: bool = False, count: bool = True
    ) -> list[str]:
        """The text of the parts, one string a part, blank ones left out.

        `harness`: with the text of the agent program. `count`: count alterations.
        """
        texts = []
        for part in parts:
            match part:
                case Text(text=text, harness=by_program) if harness or not by_program:
                    if text.strip():
                        texts.append(text)
                    elif text and count:
                        self.count("blank_text")
                case Unparsed(text=text) if text.strip():
                    texts.append(text)
                case Media() | Data():
                    texts.append(part_text(part))
                    if count:
                        self.count("media" if isinstance(part, Media) else "json_text")
                case _:
                    pass
        return texts


def join(first: Block, second: Block) -> Block:
    """Join two assistant blocks to one turn, their parts in order.

    A turn of which a part is not the model's own is no target; one is a repeat if all of it is.
    """
    moved = len(second.texts) if first.calls else second.text_last
    codes = [first.untrained, second.untrained]
    foreign = next((code for code in codes if code not in (None, REPEAT)), None)
    return replace(
        first,
        texts=first.texts + second.texts,
        reasoning=first.reasoning + second.reasoning,
        calls=first.calls + second.calls,
        results=first.results + second.results,
        text_last=first.text_last + moved,
        fault=first.fault or second.fault,
        untrained=foreign or (REPEAT if codes == [REPEAT, REPEAT] else None),
        context=lowest([item for item in (first.context, second.context) if item is not None]),
        hidden=second.hidden,
    )


def part_text(part: Text | Data | Media) -> str:
    """Write a part of a message or a result as text: `[image]` for media, a value as JSON."""
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
