"""Steps on turns: one system text, roles that alternate, first and last turn, one text a turn."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from builder.normalize.draft import Block, Draft, DraftCall, calls_in, join
from builder.normalize.options import NormalizeOptions
from builder.problem import Problem


def system(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """One system text: `system_joined`, `system_dropped`, `system_replaced`, `system_supplied`."""
    logged = "\n\n".join(draft.system)
    draft = draft.counting(system_joined=max(len(draft.system) - 1, 0))
    if options.system == "drop":
        return replace(draft.counting(system_dropped=bool(logged)), system=())
    supplied = options.supplied_system
    if supplied is not None and (options.system == "replace" or not logged):
        code = "system_replaced" if logged else "system_supplied"
        return replace(draft.counting(**{code: 1}), system=(supplied,) if supplied.strip() else ())
    kept = (logged,) if logged else ()
    return draft if kept == draft.system else replace(draft, system=kept)


def turns(draft: Draft, _: NormalizeOptions) -> Draft | Problem:
    """Roles alternate: empty turns go, harness text goes unless answered, neighbours are joined."""
    blocks: list[Block] = []
    counts: Counter[str] = Counter()
    pending: Block | None = None  # harness text that nothing has answered yet
    for block in draft.blocks:
        last = blocks[-1] if blocks else None
        if block.role == "assistant" and not (block.texts or block.calls or block.fault):
            counts["empty_assistant"] += 1
            counts["reasoning_dropped"] += bool(block.reasoning)
            continue
        if block.role == "user" and block.harness:
            if pending is not None:
                pending = replace(pending, texts=pending.texts + block.texts)
            else:
                pending = block
            continue
        if pending is not None:
            alone = last is None or (last.role == "assistant" and not last.calls)
            if block.role == "assistant" and alone:
                blocks.append(replace(pending, harness=False))
                counts["harness_prompt"] += 1
                last = blocks[-1]
            else:
                counts["harness_text"] += len(pending.texts)
            pending = None
        if last is None or last.role != block.role:
            blocks.append(block)
        elif block.role == "user":
            counts["user_joined"] += 1
            blocks[-1] = replace(last, texts=last.texts + block.texts)
        elif not last.calls:
            counts["assistant_joined"] += 1
            blocks[-1] = join(last, block)
        else:
            blocks.append(block)  # an unanswered call before it: `cut` decides
    counts["harness_text"] += len(pending.texts) if pending else 0
    return draft.having(blocks, counts)


def edges(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Begins with a user turn and ends with an assistant turn that is an answer.

    Assistant turns before the first user turn are cut (`leading_cut`), their calls dropped as
    `before_user`. Trailing user turns and tool results are cut (`trailing_cut`), and with the
    results the turns that called for them (`no_final_answer`): a call without its answer is no
    sample. A complete conversation, and any that is cut into turns, keeps its last turn, without
    the results that followed it.
    """
    blocks = list(draft.blocks)
    leading = 0
    while leading < len(blocks) and blocks[leading].role != "user":
        leading += 1
    draft = draft.dropping(calls_in(blocks[:leading]), "before_user").counting(leading_cut=leading)
    rest = blocks[leading:]
    blocks = rest.copy()
    while blocks and blocks[-1].role == "user":
        blocks.pop()
    whole = draft.complete and draft.cut is None
    if blocks and blocks[-1].calls and (whole or options.unit == "turn"):
        last = blocks.pop()
        draft = draft.counting(trailing_cut=any(call.answer is not None for call in last.calls))
        blocks.append(replace(last, calls=tuple(replace(c, answer=None) for c in last.calls)))
    else:
        unanswered: list[DraftCall] = []
        while blocks and (blocks[-1].role == "user" or blocks[-1].calls):
            unanswered += blocks.pop().calls
        draft = draft.dropping(unanswered, "no_final_answer")
    draft = draft.counting(trailing_cut=len(rest) - len(blocks))
    if not blocks:
        return _nothing_left(draft, rest)
    return draft.having(blocks)


def _nothing_left(draft: Draft, rest: list[Block]) -> Problem:
    """Why no turn is left to train on: the cut that took the last ones, else what is missing."""
    if draft.cut is not None:
        return draft.cut
    if not rest:
        return Problem("no_user", "conversation", "no user turn", records=0)
    if not any(block.role == "assistant" for block in rest):
        return Problem("no_assistant", "conversation", "no assistant turn answers a user turn", 0)
    return Problem("no_final_answer", "conversation", "ends with calls, no answer follows", 0)


def joins(draft: Draft, _: NormalizeOptions) -> Draft | Problem:
    """The pieces of a turn as one text, text before calls, no leading newlines in an answer.

    Counts `text_joined`, `text_after_call` (moved before it), `leading_newlines`.
    """
    counts: Counter[str] = Counter()
    blocks = []
    for block in draft.blocks:
        counts["text_joined"] += len(block.texts) > 1
        counts["text_after_call"] += block.text_last if block.calls else 0
        text = block.content
        if block.role == "assistant" and text.startswith("\n"):
            counts["leading_newlines"] += 1
            text = text.lstrip("\n")
        texts = (text,) if text else ()
        blocks.append(block if texts == block.texts else replace(block, texts=texts))
    return draft.having(blocks, counts)
