"""Represents the history of a Codex session as turns, and as the messages of a request.

A turn of the model is everything it wrote before the first tool output, with its tool outputs.
Source: docs/formats/codex.md, "How the history is rebuilt"; codex-rs/core/src/context_manager
(Apache-2.0) for what is sent again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import (
    REPEAT,
    Context,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.readers.agents.codex import items
from builder.readers.toolkit.unanswered import supply_results

_SUMMARY_PREFIX = "Another language model started to solve this problem"
_KEPT_USER_CHARS = 80_000
"""The approximate limit of user messages that a compaction keeps: 20,000 tokens of 4 bytes.

Source: codex-rs/core/src/compact.rs, COMPACT_USER_MESSAGE_MAX_TOKENS.
"""


@dataclass(slots=True)
class RolloutTurn:
    """One entry of the history: a message, or the model's turn with its results.

    hides      codes of `Context.missing` for the parts of this entry that are not logged
    untrained  why it is not a target, as in `Message`
    model      the model of the request that it answers
    response   the provider's id of the response
    unknown    keys with text that are not known, as in `Message`
    is_counted the log has the record of usage that follows a whole answer; None: it has none of any
    """

    role: str
    parts: list[Part] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    hides: set[str] = field(default_factory=set)
    untrained: str | None = None
    model: str | None = None
    response: str | None = None
    unknown: list[str] = field(default_factory=list)
    is_counted: bool | None = None

    @property
    def calls(self) -> list[ToolCall]:
        """The calls among its parts."""
        return [part for part in self.parts if isinstance(part, ToolCall)]

    @property
    def text(self) -> str:
        """Its texts, concatenated."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def is_prompt(self) -> bool:
        """Returns whether it is a user's message with more than harness text."""
        return self.role == "user" and any(
            not (isinstance(part, Text) and part.harness) for part in self.parts
        )

    @property
    def has_content(self) -> bool:
        """Returns whether it has more than harness context, thoughts and unreadable items."""
        written = any(not isinstance(part, Unparsed | Reasoning) for part in self.parts)
        return bool(self.results) or self.is_prompt or (self.role == "assistant" and written)


def last_answer(turns: Sequence[RolloutTurn]) -> int | None:
    """Returns the index of the model's last turn, or None."""
    return next((at for at in reversed(range(len(turns))) if turns[at].role == "assistant"), None)


def ends_review(turns: Sequence[RolloutTurn]) -> bool:
    """Returns whether the last entry says how a review ended: the program adds its result next."""
    return bool(turns) and turns[-1].text.startswith("<user_action>")


def mark_replayed(
    turns: Sequence[RolloutTurn], before: Sequence[RolloutTurn], *, is_encrypted: bool
) -> None:
    """Marks the model's turns in a history that replaced another: none of them is a target.

    A turn is a repeat if the replaced history (`before`) has a turn with the same text and no call.
    Other turns were stripped of their calls. With an encrypted summary, any turn may have been.
    """
    whole = {turn.text for turn in before if turn.role == "assistant" and not turn.calls}
    for turn in turns:
        if turn.role == "assistant":
            is_repeat = not is_encrypted and turn.text in whole
            turn.untrained = REPEAT if is_repeat else "stripped"


def rebuilt(before: Sequence[RolloutTurn], summary: str) -> list[RolloutTurn]:
    """Returns the history after a compaction of which only the summary is logged.

    Older builds kept the context at the start of the history and the user's messages, and appended
    the summary (seen in 0.77).
    """
    heads = [at for at, turn in enumerate(before) if turn.has_content]
    prompts = [turn for turn in before if turn.is_prompt]
    hides = set() if summary else {"encrypted_context"}
    if sum(len(turn.text) for turn in prompts) > _KEPT_USER_CHARS or (
        summary and not summary.startswith(_SUMMARY_PREFIX)
    ):
        hides = {"history"}
    parts: list[Part] = [Text(summary, harness=True)] if summary else []
    first = before[: heads[0]] if heads else before
    return [*first, *prompts, RolloutTurn("user", parts, hides=hides)]


def messages(
    system: str,
    turns: Sequence[RolloutTurn],
    missing: frozenset[str],
    unsure: Collection[str | None] = (),
) -> tuple[list[Message], int]:
    """Returns the history as messages, and the number of results that Codex supplied itself.

    The model's turns are numbered because the log has no ids for them. In later requests, Codex
    answers a call without an output with ABORTED. `missing`: the codes of what the log lacks from
    the start. `unsure`: ids of the calls whose outputs may be in lines that are lost.
    """

    def aborted(call: ToolCall) -> ToolResult | None:
        if call.id in unsure:
            return None
        return ToolResult((Text(items.ABORTED),), call.id, is_interrupted=True)

    messages = [Message("system", (Text(system),))] if system else []
    base = Context.lacking(missing)
    number = 0
    for turn in turns:
        name = context = None
        if turn.role == "assistant":
            number += 1
            name, context = f"response {number}", Context.lacking(missing)
        if turn.parts:
            context = None if context == base else context
            parts = tuple(turn.parts)
            untrained = turn.untrained or ("aborted" if turn.is_counted is False else None)
            message = Message(turn.role, parts, name, untrained, context, turn.model)
            unknown = tuple(dict.fromkeys(turn.unknown))
            messages.append(replace(message, response=turn.response, unknown=unknown))
        missing |= turn.hides
        messages += [Message("tool", (result,)) for result in turn.results]
    return supply_results(messages, aborted)
