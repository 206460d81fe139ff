"""Reads a conversation into a draft: roles resolved, messages of one turn in one block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from builder.conversation import (
    LOST_RECORD,
    REPEAT,
    Content,
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
from builder.jsonio import loads_text
from builder.normalize.calls import join_answers
from builder.normalize.draft import Block, Draft, DraftCall, calls_in, join, part_text
from builder.normalize.options import NormalizeOptions
from builder.normalize.tools import flat, is_name_only
from builder.problem import Problem
from builder.readers.toolkit.made_up import foreign_call
from builder.readers.toolkit.marks import is_removed
from builder.readers.toolkit.narrow import as_dict
from builder.readers.toolkit.thoughts import read_thoughts
from builder.readers.toolkit.unknown_keys import unknown_key

UNKNOWN_PART = "unknown_part"
_EXACT_DIGITS = 15
"""A double gives back every decimal number of this many digits."""


def derived_context(conversation: Conversation, has_system: bool) -> Context:
    """Returns the context that follows from the presence of a system prompt and logged tools.

    Definitions that consist of a name are not what the model saw: `tools` are missing.
    """
    missing = [] if has_system else ["system"]
    added = ("inferred", "supplied", "captured", "shared", "mixed")
    tools = conversation.tools
    if tools is None or conversation.tools_source in added or any(map(is_name_only, flat(tools))):
        missing.append("tools")
    return Context("partial" if missing else "logged", tuple(missing))


def read_draft(conversation: Conversation, options: NormalizeOptions) -> Draft | Problem:
    """Makes the draft of a conversation: roles resolved, messages of one turn in one block.

    The role developer becomes system (`developer_role`). Leading system messages become the system
    text; a later one becomes a user turn (`late_system`), stays (`late_system_kept`) or is rejected
    (Problem `late_system`). An unknown role is rejected (Problem `unknown_role`). Under
    `harness: drop`, harness text next to other text is left out (`harness_text`). Media become
    `[image]` (`media`) or are rejected (Problem `media`); so is a text that the log's writer took
    out (`redacted`). Parts of unknown types are left out
    (`unknown_part`), which makes the context of later turns `partial`.
    """
    reader = _DraftReader(options, doubles=conversation.doubles)
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
        padded=conversation.padded,
        context=conversation.context or derived_context(conversation, bool(reader.system)),
    )
    return draft.counting(**reader.counts).dropping(reader.misplaced, "not_by_assistant")


class _DraftReader:
    """The state of one pass over the messages."""

    def __init__(self, options: NormalizeOptions, *, doubles: bool) -> None:
        self.options = options
        self.doubles = doubles
        self.drops_harness = options.harness == "drop"
        self.blocks: list[Block] = []
        self.system: list[str] = []
        self.counts: Counter[str] = Counter()
        self.misplaced: list[DraftCall] = []
        self.ordinal = 0
        self.asked: int | None = None
        """Index of the last assistant block, the only one to which results can belong."""
        self.run = 0
        """Index of the first of the blocks that may be one answer with that block."""
        self.follows_answer = False
        """Whether the preceding message is the assistant's."""
        self.results: list[ToolResult] = []
        """Results for that block that are not yet attached to it."""
        self.hidden: set[str] = set()
        self.has_lost = False
        """Whether records are lost since the last message of the user or the model."""
        self.answers_lost = False
        """Whether the next answer may be that to a lost record."""
        self.moved: set[int] = set()
        """Ids of the blocks of the user that results went past."""

    def take(self, message: Message) -> Problem | None:
        has_media, unknown = False, 0
        for part in message.parts:
            for one in part.content if isinstance(part, ToolResult) else (part,):
                if isinstance(one, Text | Reasoning):
                    if is_removed(one.text):
                        detail = "a text was taken out before it was logged"
                        return Problem("redacted", "message", detail, records=0)
                elif isinstance(one, ToolCall):
                    if message.role != "assistant":
                        self.misplaced.append(self._call(one))
                else:
                    has_media = has_media or isinstance(one, Media)
                    unknown += isinstance(one, Unparsed) and one.code == UNKNOWN_PART
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
        self.follows_answer = message.role == "assistant"
        if LOST_RECORD in message.parts:
            self.has_lost = self.answers_lost = True
            self.hidden.add("history")
        elif message.role in ("user", "assistant"):
            self.has_lost = self.answers_lost = False
        self.counts.update(map(unknown_key, message.unknown))
        if has_media:
            self.hidden.add("media")  # later turns saw something that a sample cannot show
        if unknown:
            self.hidden.add(UNKNOWN_PART)
            if message.role != "assistant":  # else the sample ends before the turn
                self.counts[UNKNOWN_PART] += unknown
        return None

    def _call(self, part: ToolCall) -> DraftCall:
        self.ordinal += 1
        return DraftCall(self.ordinal - 1, part.name, part.arguments, part.id)

    def _system(self, message: Message) -> Problem | None:
        texts = self._texts(message.parts, harness=not self.drops_harness)
        harness = [part for part in message.parts if isinstance(part, Text) and part.harness]
        if harness and self.drops_harness:
            self.counts["harness_text"] += len(harness)
        if not texts:
            return None
        is_late = any(not (block.harness and self.drops_harness) for block in self.blocks)
        policy = self.options.late_system
        if is_late and policy == "reject":
            return Problem("late_system", "message", "a system message after the first turn", 0)
        if message.role == "developer":
            self.counts["developer_role"] += 1
        if is_late:
            self.counts["late_system" if policy == "user" else "late_system_kept"] += 1
            role = "user" if policy == "user" else "system"
            self.blocks.append(Block(role, turn=message.turn, texts=tuple(texts)))
        else:
            self.system.extend(texts)
        return None

    def _results(self, message: Message) -> None:
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        if message.role == "tool" and not results:
            plain = tuple(part for part in message.parts if isinstance(part, Content))
            results = [ToolResult(plain)] if plain else []
        asked = [call.id for call in calls_in(self._answer())]
        for result in results:
            self.answers_lost = self.has_lost and result.call_id not in asked
            if not asked:
                self.counts["orphan_result"] += 1
                self.hidden.add("history")  # later turns saw a result that a sample cannot show
                continue
            self.results.append(result)
            assert self.asked is not None, "a call was made"
            for block in self.blocks[self.asked + 1 :]:
                if block.role == "user" and not block.harness and id(block) not in self.moved:
                    self.moved.add(id(block))
                    self.counts["user_moved"] += 1

    def _answer(self) -> list[Block]:
        return [] if self.asked is None else self.blocks[self.run : self.asked + 1]

    def attach_results(self) -> None:
        """Joins the blocks that are one answer, and attaches the pending results to it."""
        if self.asked is not None and self.run < self.asked:
            answer = self._answer()
            joined = join_answers(answer, self.results)
            self.counts["assistant_joined"] += len(answer) - len(joined)
            self.blocks[self.run : self.asked + 1] = joined
            self.run = self.asked = self.run + len(joined) - 1
        if self.asked is not None:
            self.blocks[self.asked].results.extend(self.results)
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
            self.counts["harness_text"] += len(harness)
        elif not texts and not any(isinstance(part, ToolResult) for part in message.parts):
            kinds = [part.text for part in message.parts if isinstance(part, Unparsed)]
            if LOST_RECORD in message.parts:
                return
            if not kinds:
                self.counts["empty_user"] += 1
                return
            last = self.blocks[-1] if self.blocks else Block("user")
            if self.asked != len(self.blocks) - 1 or not (self.results or last.results):
                block = Block("user", turn=message.turn, fault=UNKNOWN_PART, unknown=kinds[0])
                self.blocks.append(block)

    def _is_call(self, text: str) -> bool:
        """Returns whether an answer contains a call that was not parsed.

        If a prompt contains the markup, it is the form in which calls are text by agreement.
        """
        markup = foreign_call(text)
        asked = (text for block in self.blocks if block.role == "user" for text in block.texts)
        return markup is not None and not any(markup in one for one in (*self.system, *asked))

    def _assistant(self, message: Message) -> None:
        texts: list[str] = []
        calls: list[DraftCall] = []
        thoughts: list[str] = []
        results: list[ToolResult] = []
        harness: list[str] = []
        fault: str | None = None
        unknown = ""
        untrained = message.untrained
        last = 0
        for part in read_thoughts(message.parts, self.counts):
            match part:
                case ToolCall():
                    calls.append(self._call(part))
                case Reasoning(is_summary=True):
                    self.counts["reasoning_summary_dropped"] += 1
                case Reasoning(text=text):
                    thoughts.append(text)
                case Unparsed(code="server_tool"):
                    untrained = "server_tool"
                case Text(text=text, harness=True):
                    harness.append(text)
                case ToolResult():
                    results.append(part)
                case _:
                    if isinstance(part, Unparsed) and fault is None:
                        fault = part.code
                        unknown = _unread(part)
                    elif fault is None and isinstance(part, Text) and self._is_call(part.text):
                        fault = "bad_call"
                    elif isinstance(part, Media):
                        untrained = untrained or "media"  # the model did not say "[image]"
                    texts_of_part = self._texts((part,))
                    texts += texts_of_part
                    last += len(texts_of_part) if calls else 0
        if self.answers_lost and untrained in (None, REPEAT):
            untrained = LOST_RECORD.code
        is_inserted = not (texts or calls or thoughts or results or fault or untrained)
        if is_inserted and not self.drops_harness and any(text.strip() for text in harness):
            texts, untrained = harness, "inserted"  # the program's text instead of an answer
        elif harness:
            self.counts["harness_text"] += len(harness)
        is_rounded = self.doubles and any(_may_be_rounded(call.arguments) for call in calls)
        self._append(
            Block(
                "assistant",
                turn=message.turn,
                texts=tuple(texts),
                reasoning=tuple(thoughts),
                calls=tuple(calls),
                results=results,
                text_last=last,
                fault=fault,
                unknown=unknown,
                untrained=untrained,
                context=message.context,
                hidden=tuple(sorted({*self.hidden, *(["arguments"] if is_rounded else [])})),
                models=() if message.model is None else (message.model,),
                speaker=message.speaker,
                tokens=message.tokens,
            )
        )
        if untrained == "server_tool":
            self.hidden.add("server_tool")

    def _append(self, block: Block) -> None:
        """Adds an assistant block, or joins it to the last one of the same turn."""
        answer = self._answer() if self.follows_answer else []
        contexts = (one.context for one in (*answer[-1:], block))
        missing = [context.missing if context else () for context in contexts]
        if (
            answer
            and block.turn is None
            and answer[-1].turn is None
            and "history" not in set(missing[1]) - set(missing[0])  # nothing is lost between them
            and not (block.models and answer[-1].models not in ((), block.models))
            and not (block.speaker and answer[-1].speaker not in (None, block.speaker))
        ):
            self.asked = len(self.blocks)
            self.blocks.append(block)
            return
        self.attach_results()
        asked = self.blocks[self.asked] if self.asked is not None else None
        if asked is not None and block.turn is not None and block.turn == asked.turn:
            assert self.asked is not None, "it has a block"
            # User text between messages of one turn came after the turn.
            self.blocks[self.asked] = join(asked, block)
            return
        self.run = self.asked = len(self.blocks)
        self.blocks.append(block)

    def _texts(
        self, parts: Iterable[Part], *, harness: bool = False, count: bool = True
    ) -> list[str]:
        """Returns the non-blank texts of the parts, one string per part.

        `harness`: includes text of the agent program. `count`: counts changes.
        """
        texts = []
        for part in parts:
            match part:
                case Text(text=text, harness=is_inserted) if harness or not is_inserted:
                    if text.strip():
                        texts.append(text)
                    elif text and count:
                        self.counts["blank_text"] += 1
                case Unparsed(text=text, code=code) if text.strip() and code != UNKNOWN_PART:
                    texts.append(text)
                case Media() | Data():
                    texts.append(part_text(part))
                    if count:
                        self.counts["media" if isinstance(part, Media) else "json_text"] += 1
                case _:
                    pass
        return texts


def _may_be_rounded(value: Json) -> bool:
    """Returns whether decoded arguments have a number that may not fit into a double."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict | list):
            pending += item.values() if isinstance(item, dict) else item
        elif isinstance(item, int):
            if abs(item) >= 2**53:
                return True
        elif isinstance(item, float):
            digits = repr(item).partition("e")[0].replace(".", "").strip("-0")
            if len(digits) > _EXACT_DIGITS:
                return True
    return False


def _unread(part: Unparsed) -> str:
    """Returns the type of a part, or the keys of a call that names no function."""
    if part.code == "bad_call":
        return ", ".join(key[:40] for key in as_dict(loads_text(part.text)))[:80]
    return part.text if part.code == UNKNOWN_PART else ""
