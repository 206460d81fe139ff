"""Normalises a Conversation to a Dialogue: logged messages in the form of the Qwen3 chat template.

The normaliser is an ordered tuple of pure steps (`STEPS`). Each takes a draft and returns the next
one, with every change counted by code (`meta.changes`), or the Problem that rejects the
conversation. Nothing is invented: turns with missing parts are cut or rejected, and definitions
inferred from calls are marked as inferred.

Messages with equal ids of the log are one turn. Without ids, consecutive assistant messages are one
turn (`assistant_joined`), unless a call lacks its result (`calls.join_answers`). Since roles must
alternate, a second answer in a row is a foreign turn (`turns.successive`), and consecutive user
messages are joined by a blank line (`user_joined`). Results precede a message of the user that the
log has before them (`user_moved`). Text that the agent program inserted into the
request stays in place (`harness: keep`); after tool results it is a separate user turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from builder.brief import brief
from builder.conversation import Context, Conversation, ToolCall
from builder.normalize.calls import arguments, pair, parallel
from builder.normalize.draft import Draft, DraftCall, calls_in
from builder.normalize.options import NormalizeOptions
from builder.normalize.reading import read_draft
from builder.normalize.tools import offered, tools
from builder.normalize.turns import (
    TOKENS,
    characters,
    cut,
    cut_before_user,
    end_with_target,
    join_texts,
    lost_calls,
    mark_tokens,
    mask,
    reasoning,
    successive,
    system,
    trim,
    turns,
)
from builder.problem import Problem
from builder.qwen3.calls import LostCall
from builder.sample import Call, Dialogue, Turn
from builder.text import escape_tokens, token_pattern


@dataclass(frozen=True, slots=True)
class Normalised:
    """The result for a conversation.

    dialogue      the dialogue; None if the conversation was rejected
    problem       why it was rejected, or None
    changes       {code: count} of the changes to logged text
    tools_source  logged, supplied, captured, shared, inferred, mixed or none
    reasoning     none, dropped or kept
    kept          ordinals (order of appearance, from 0) of the calls in the dialogue
    dropped       {ordinal: code} of all other calls
    contexts      the context of each assistant turn of the dialogue
    models        the names of the models that gave each assistant turn; None: not logged
    failures      for each assistant turn, the failure of each call: error, denied, interrupted or
                  None
    untrained     for each assistant turn, the code for which it is not a target, or None
    is_flagged    whether the log says which calls failed
    lost          the calls that a server's parser would not give back: their turns are no targets
    cut           the code for which the dialogue ends before turns of the log; None: it does not
    """

    dialogue: Dialogue | None
    problem: Problem | None
    changes: Mapping[str, int]
    tools_source: str = "none"
    reasoning: str = "none"
    kept: frozenset[int] = frozenset()
    dropped: Mapping[int, str] = field(default_factory=dict)
    contexts: tuple[Context, ...] = ()
    models: tuple[tuple[str | None, ...], ...] = ()
    failures: tuple[tuple[str | None, ...], ...] = ()
    untrained: tuple[str | None, ...] = ()
    is_flagged: bool = False
    lost: tuple[LostCall, ...] = ()
    cut: str | None = None

    def __repr__(self) -> str:
        """Returns the number of turns and what was changed in one line."""
        code = None if self.problem is None else self.problem.code
        turns = f"{len(self.dialogue.turns) if self.dialogue is not None else 0} turns"
        return brief(
            self, turns, problem=code, changes=self.changes, tools_source=self.tools_source
        )

    @property
    def failed_calls(self) -> dict[str, str] | None:
        """Returns {place of a call in the dialogue: failure}; None if the log does not say."""
        return None if self.dialogue is None else self.failed_in(self.dialogue, count())

    def failed_in(self, dialogue: Dialogue, origins: Iterable[int]) -> dict[str, str] | None:
        """Returns `failed_calls` for a part of the dialogue.

        `origins` are the ordinals of the part's assistant turns in the whole dialogue.
        """
        if not self.is_flagged:
            return None
        answers = (at for at, turn in enumerate(dialogue.turns) if turn.role == "assistant")
        return {
            f"messages[{at}].calls[{number}]": failure
            for at, origin in zip(answers, origins, strict=False)
            for number, failure in enumerate(self.failures[origin])
            if failure is not None
        }


_Step = Callable[[Draft, NormalizeOptions], "Draft | Problem"]


def normalise(conversation: Conversation, options: NormalizeOptions) -> Normalised:
    """Converts a conversation to a dialogue that fits the template, or rejects it."""
    total = sum(
        isinstance(part, ToolCall) for message in conversation.messages for part in message.parts
    )
    result: Draft | Problem
    if conversation.evaluation and not options.allow_eval:
        detail = "a benchmark's own data, which must not be trained on"
        result = Problem("evaluation_data", conversation.record, detail, records=0)
    elif problems := [
        problem
        for problem in conversation.problems
        if problem.code != "rewound" or "rewound" in options.mask
    ]:
        result = replace(problems[0], records=0)
    else:
        result = read_draft(conversation, options)
    began = result
    draft, result = _after(STEPS, began, options)
    if (
        isinstance(result, Problem)
        and result.code == TOKENS
        and options.control_tokens == "context"
    ):
        before, shorter = _after(_UP_TO_TOKENS, began, options)
        if not isinstance(shorter, Problem):  # the turns before them are kept
            draft, result = before, shorter
    if isinstance(result, Problem):
        dropped = {n: draft.dropped.get(n, result.code) for n in range(total)}
        return Normalised(None, result, draft.changes, dropped=dropped, lost=draft.lost)
    draft = result
    answers = [block for block in draft.blocks if block.role == "assistant"]
    default = conversation.models or (conversation.model,)
    kept = frozenset(call.ordinal for call in calls_in(answers))
    assert kept.isdisjoint(draft.dropped), "a call was kept and dropped"
    assert len(kept) + len(draft.dropped) == total, "a call was lost"
    return Normalised(
        dialogue=_dialogue(draft, options),
        problem=None,
        changes=dict(sorted(draft.changes.items())),
        tools_source=draft.tools_source,
        reasoning=draft.reasoning,
        kept=kept,
        dropped=draft.dropped,
        contexts=tuple(block.context_in(draft) for block in answers),
        models=tuple(block.models or default for block in answers),
        failures=tuple(tuple(call.failure for call in block.calls) for block in answers),
        untrained=tuple(block.untrained for block in answers),
        is_flagged=any(call.is_flagged for call in calls_in(answers)),
        lost=draft.lost,
        cut=draft.cut.code if draft.cut is not None and draft.changes.get("turns_cut") else None,
    )


STEPS: tuple[_Step, ...] = (
    system,
    turns,
    cut_before_user,
    pair,
    arguments,
    offered,
    lost_calls,
    mask,
    successive,
    cut,
    end_with_target,
    parallel,
    reasoning,
    tools,
    join_texts,
    characters,
    trim,
)


_UP_TO_TOKENS = (*STEPS[: STEPS.index(successive)], mark_tokens, *STEPS[STEPS.index(successive) :])


def _after(
    steps: Sequence[_Step], result: Draft | Problem, options: NormalizeOptions
) -> tuple[Draft, Draft | Problem]:
    """Returns the draft before the last step that was run, and the result of that step."""
    draft = Draft(())
    for step in steps:
        if isinstance(result, Problem):
            break
        draft = result
        result = step(draft, options)
    return draft, result


def _dialogue(draft: Draft, options: NormalizeOptions) -> Dialogue:
    pattern = token_pattern(options.added_tokens)
    result = [Turn("system", text) for text in draft.system]
    for block in draft.blocks:
        result.append(
            Turn(
                role=block.role,
                content=block.content,
                reasoning="".join(block.reasoning),
                calls=tuple(_written(call, pattern) for call in block.calls),
                trained=block.untrained is None,
                tokens=block.tokens,
            )
        )
        answers = tuple(call.answer for call in block.calls if call.answer is not None)
        if answers:
            result.append(Turn("tool", responses=answers))
    return Dialogue(tuple(result), draft.tools or ())


def _written(call: DraftCall, pattern: re.Pattern[str]) -> Call:
    assert isinstance(call.arguments, dict), "the step `cut` leaves no others"
    text, _ = escape_tokens(call.written, pattern)
    return Call.written(call.name, call.arguments, text, call.written)
