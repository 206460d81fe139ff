"""Steps on turns: one system text, alternating roles, the first turn, one text per turn."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from builder.normalize.draft import Block, Draft, calls_in
from builder.normalize.options import NormalizeOptions
from builder.problem import Problem


def system(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Makes one system text and drops, replaces or supplies it as the options say.

    Counts `system_joined`, `system_dropped`, `system_replaced`, `system_supplied`.
    """
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


def turns(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Drops empty turns and joins consecutive user turns.

    Under `harness: drop` a turn of harness text is dropped (`harness_text`), unless it is the only
    turn that an assistant turn answers (`harness_prompt`).
    """
    blocks: list[Block] = []
    counts: Counter[str] = Counter()
    pending: Block | None = None  # harness text that has not been answered yet
    for block in draft.blocks:
        last = blocks[-1] if blocks else None
        if block.role == "assistant" and _is_empty(block, options):
            counts["empty_assistant"] += 1
            counts["reasoning_dropped"] += bool(block.reasoning)
            continue
        if block.role == "user" and block.harness and options.harness == "drop":
            texts = block.texts if pending is None else pending.texts + block.texts
            pending = replace(pending or block, texts=texts)
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
        elif block.role != "assistant":
            counts[f"{block.role}_joined"] += 1
            blocks[-1] = replace(
                last,
                texts=last.texts + block.texts,
                fault=last.fault or block.fault,
                unknown=last.unknown or block.unknown,
            )
        else:
            blocks.append(block)  # another answer (`targets.successive`, `cut`)
    counts["harness_text"] += len(pending.texts) if pending else 0
    return draft.having(blocks, counts)


def _is_empty(block: Block, options: NormalizeOptions) -> bool:
    """Returns whether an assistant block has no content and does not end the conversation."""
    if block.texts or block.calls or block.fault:
        return False
    return block.untrained != "server_tool" or options.server_tools == "untrained"


def cut_before_user(draft: Draft, _: NormalizeOptions) -> Draft | Problem:
    """Cuts the turns before the first user turn (`leading_cut`).

    Their calls are dropped with the code `before_user`, and later answers lack them (`history`).
    """
    first = next((at for at, block in enumerate(draft.blocks) if block.role == "user"), None)
    if first == 0:
        return draft
    blocks = draft.blocks if first is None else draft.blocks[:first]
    draft = draft.dropping(calls_in(blocks), "before_user").counting(leading_cut=len(blocks))
    if first is None:
        return Problem("no_user", "conversation", "no user turn", records=0)
    answers = any(block.role == "assistant" for block in blocks)
    return draft.having(
        [
            block.lacking("history") if answers and block.role == "assistant" else block
            for block in draft.blocks[first:]
        ]
    )


def join_texts(draft: Draft, _: NormalizeOptions) -> Draft | Problem:
    """Joins the texts of a turn to one text before its calls, without leading newlines.

    Counts `text_joined`, `text_after_call` (moved before the call), `leading_newlines`.
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
