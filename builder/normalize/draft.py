"""Defines the draft, the form of a conversation that the steps of the normaliser pass on.

A draft is a list of blocks. A user block is a user turn. An assistant block is an assistant turn
with the logged results of its calls, so that no step can separate a call from its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_

from builder.conversation import (
    REPEAT,
    Context,
    Data,
    Json,
    Media,
    Text,
    TokenIds,
    ToolResult,
    lowest,
)
from builder.jsonio import dumps, dumps_compact
from builder.problem import Problem
from builder.qwen3.calls import LostCall

UNKNOWN = Context("partial")
"""The default context of a draft."""


@dataclass(frozen=True, slots=True)
class DraftCall:
    """A call being normalised. `ordinal` is its position among the conversation's calls, from 0.

    `arguments` are as logged until the step `arguments` decodes them. `written` is their JSON text,
    set by the step `characters`. `answer` is the text of the call's result, if there is one.
    `failure` is error, denied or interrupted if the call failed, else None. `is_flagged`: the log
    says whether it failed.
    """

    ordinal: int
    name: str
    arguments: Json
    id: str | None = None
    answer: str | None = None
    written: str = ""
    failure: str | None = None
    is_flagged: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """One system, user or assistant turn; the leading system text is not a block.

    harness    user: all of its text was inserted by the agent program
    text_last  assistant: number of text parts after a call
    results    assistant: the results logged for this turn, in logged order, until `pair`; only
               the pass over the messages adds to the list
    fault      code of a part of the turn that could not be parsed; for a user turn only
               `unknown_part`, of a message without other parts
    unknown    the type of that unknown part
    untrained  assistant: why the turn is not a target (`Message.untrained`), or None
    context    assistant: the context of its message, if the reader states one
    hidden     assistant: codes of parts of its context that a sample cannot show
    models     assistant: the models that gave it, in order, as its messages name them
    speaker    assistant: the participant that gave it, if the log names one
    tokens     assistant: the ids of its tokens, if the log has them
    """

    role: str
    turn: str | None = None
    texts: tuple[str, ...] = ()
    harness: bool = False
    reasoning: tuple[str, ...] = ()
    calls: tuple[DraftCall, ...] = ()
    results: list[ToolResult] = field(default_factory=list)
    text_last: int = 0
    fault: str | None = None
    unknown: str = ""
    untrained: str | None = None
    context: Context | None = None
    hidden: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    speaker: str | None = None
    tokens: TokenIds | None = field(default=None, compare=False, repr=False)

    def context_in(self, draft: Draft) -> Context:
        """Returns the context of an assistant block."""
        own, hidden = self.context or draft.context, (*self.hidden, *draft.hidden)
        return lowest([own, Context("partial", hidden)]) or own if hidden else own

    def lacking(self, code: str) -> Block:
        """Returns the block with a code of what its context lacks (`MISSING`)."""
        return replace(self, hidden=tuple(sorted({*self.hidden, code})))

    def with_calls(self, change: Callable[[DraftCall], DraftCall]) -> Block:
        """Returns the block with its calls changed; itself if none is."""
        calls = tuple(map(change, self.calls))
        return self if all(map(is_, calls, self.calls)) else replace(self, calls=calls)

    @property
    def content(self) -> str:
        """The texts of the block, joined by blank lines."""
        return "\n\n".join(self.texts)


@dataclass(frozen=True, slots=True)
class Draft:
    """A conversation being normalised.

    `called` has all readable calls of offered tools, including calls that are dropped later:
    definitions are inferred from them. `changes` counts changes by code. `dropped` maps the
    ordinals of dropped calls to codes. `cut` is why turns were cut, if any were. `tools_source`
    describes the logged `tools` until the step `tools` sets it for all definitions. `padded`: nulls
    may be those of a table (`Conversation.padded`). `context` applies to turns whose block has
    none, and `hidden` has codes of what a sample cannot show of any of them. `lost` has the calls
    of would-be targets that a server's parser would not give back.
    """

    blocks: tuple[Block, ...]
    system: tuple[str, ...] = ()
    called: tuple[DraftCall, ...] = ()
    tools: tuple[Json, ...] | None = None
    tools_source: str = "none"
    reasoning: str = "none"
    changes: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[int, str] = field(default_factory=dict)
    cut: Problem | None = None
    complete: bool = False
    recorded: bool = False
    version: str | None = None
    padded: bool = False
    context: Context = UNKNOWN
    hidden: tuple[str, ...] = ()
    lost: tuple[LostCall, ...] = ()

    def counting(self, **codes: int) -> Draft:
        """Returns the draft with the codes added to its changes; a count of 0 adds nothing."""
        added = {code: self.changes.get(code, 0) + n for code, n in codes.items() if n}
        return replace(self, changes={**self.changes, **added}) if added else self

    def having(self, blocks: Sequence[Block], counts: Mapping[str, int] | None = None) -> Draft:
        """Returns the draft with these blocks and the counts added; itself if nothing changed."""
        draft = self.counting(**counts) if counts else self
        if len(blocks) == len(self.blocks) and all(map(is_, blocks, self.blocks)):
            return draft
        return replace(draft, blocks=tuple(blocks))

    def dropping(self, calls: Iterable[DraftCall], code: str) -> Draft:
        """Returns the draft with the calls dropped for `code`, unless they already are."""
        added = {call.ordinal: code for call in calls}
        return replace(self, dropped={**added, **self.dropped}) if added else self


def calls_in(blocks: Iterable[Block]) -> list[DraftCall]:
    """Returns all calls of the blocks, in order."""
    return [call for block in blocks for call in block.calls]


def join(first: Block, second: Block) -> Block:
    """Joins two assistant blocks to one turn, their parts in order.

    If one block is not the model's own answer, neither is the turn; two repeats make a repeat.
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
        unknown=first.unknown if first.fault else second.unknown,
        untrained=foreign or (REPEAT if codes == [REPEAT, REPEAT] else None),
        speaker=first.speaker or second.speaker,
        context=lowest([item for item in (first.context, second.context) if item is not None]),
        hidden=tuple(sorted({*first.hidden, *second.hidden})),
        models=tuple(dict.fromkeys(first.models + second.models)),
        # The prompt of the second one contains the first one; alone, the ids are of a part only.
        tokens=second.tokens if second.tokens and second.tokens.prompt else None,
    )


def part_text(part: Text | Data | Media) -> str:
    """Returns a part of a message or result as text: media as `[image]`, a value as JSON."""
    match part:
        case Text(text=text):
            return text
        case Data(value=value, compact=compact):
            return dumps_compact(value) if compact else dumps(value)
        case Media(kind=kind):
            return f"[{kind}]"
