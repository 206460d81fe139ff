"""Defines the draft: a conversation on its way to a dialogue, as passed between the steps.

A draft is a list of blocks. A user block is a user turn; an assistant block is an assistant turn
with the results that were logged for its calls, so that no step can separate a call from its
result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_

from builder.conversation import REPEAT, Context, Data, Json, Media, Text, ToolResult, lowest
from builder.jsonio import dumps
from builder.normalize.context import UNKNOWN
from builder.problem import Problem


@dataclass(frozen=True, slots=True)
class DraftCall:
    """A call being normalised. `ordinal` is its position among the conversation's calls, from 0.

    `arguments` are as logged until they are decoded, `written` their JSON text once their
    characters are clean; `answer` is the text of its result, None until (or unless) one is found;
    `failure` is error, denied or interrupted if the call failed, else None.
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

    harness    user: all of its text was inserted by the agent program
    text_last  assistant: number of text parts that followed a call
    results    assistant: the results logged for this turn, in logged order
    fault      code of something in the turn that could not be parsed; of a user turn only
               `unknown_part`, if a message contains nothing else
    unknown    the type of the unknown part that is the fault
    untrained  assistant: why the turn is not a target (`Message.untrained`), or None
    context    assistant: how well the log shows its context, if its message has one
    hidden     assistant: codes of parts of its context that a sample cannot show
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
    unknown: str = ""
    untrained: str | None = None
    context: Context | None = None
    hidden: tuple[str, ...] = ()

    def context_in(self, whole: Context) -> Context:
        """Returns the context of an assistant block in a conversation whose context is `whole`."""
        own = self.context or whole
        hidden = [Context("partial", self.hidden)] if self.hidden else []
        return lowest([own, *hidden]) or own

    @property
    def content(self) -> str:
        """Returns its pieces of text, joined by blank lines."""
        return "\n\n".join(self.texts)


@dataclass(frozen=True, slots=True)
class Draft:
    """The state that the steps pass on; each returns a new one, or the Problem that ends it.

    `called` has name and arguments of all readable calls, including those left out later, because
    definitions are inferred from them. `changes` counts changes by code, `dropped` maps each call
    left out to its code, `cut` is the reason for which turns were cut, if any. `tools_source`
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
        """Returns the draft with the calls left out for `code`, unless they already are."""
        added = {call.ordinal: code for call in calls}
        return replace(self, dropped={**added, **self.dropped}) if added else self


def calls_in(blocks: Iterable[Block]) -> list[DraftCall]:
    """Returns all calls of the blocks, in order."""
    return [call for block in blocks for call in block.calls]


def join(first: Block, second: Block) -> Block:
    """Joins two assistant blocks to one turn, their parts in order.

    A turn with a part that is not the model's own is not a target; it is a repeat if all of it is.
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
        context=lowest([item for item in (first.context, second.context) if item is not None]),
        hidden=second.hidden,
    )


def part_text(part: Text | Data | Media) -> str:
    """Returns a part of a message or a result as text: `[image]` for media, a value as JSON."""
    match part:
        case Text(text=text):
            return text
        case Data(value=value):
            return dumps(value)
        case Media(kind=kind):
            return f"[{kind}]"
