"""Steps that fit a conversation to the target's template: calls that it loses, edges that it trims.

The default target loses no call and trims nothing, so these steps return its drafts unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from builder.conversation import REPEAT, Json
from builder.jsonio import dumps
from builder.normalize.definitions import tools
from builder.normalize.draft import Block, Draft, DraftCall
from builder.normalize.options import NormalizeOptions
from builder.problem import Problem
from builder.qwen3.dialect import Dialect, LostCall, Signatures, signatures
from builder.sample import Call


def lost_calls(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Marks turns with calls that a server's parser would not give back as they were made.

    The turn is context, not a target (`xml_types`, `xml_markup`); its calls become what is read
    back, which renders to the same bytes. The same applies to turns in whose text it would find a
    call. If nothing can be read back (a value that contains the tags of the dialect, or a control
    token), the turn cannot be written at all. `Draft.lost` has the reasons.
    """
    dialect = options.style.dialect
    if dialect.plain:
        return draft
    known: Signatures = {}
    if any(block.calls for block in draft.blocks):
        listed = tools(draft, options)
        if isinstance(listed, Problem):
            return draft  # the step `tools` reports it
        known = signatures(tuple(map(dumps, listed.tools or ())))
    blocks: list[Block] = []
    lost: list[LostCall] = []
    for block in draft.blocks:
        marked, losses = _marked(block, dialect, known)
        blocks.append(marked)
        if block.untrained in (None, REPEAT) and block.fault is None:
            lost += losses
    return replace(draft.having(blocks), lost=tuple(lost)) if lost else draft.having(blocks)


def _marked(block: Block, dialect: Dialect, known: Signatures) -> tuple[Block, Sequence[LostCall]]:
    """Returns the block, marked if it is an answer with losses, and these."""
    if block.role != "assistant":
        return block, ()
    losses = [loss for loss in map(dialect.stray, block.texts) if loss is not None]
    calls = []
    for call in block.calls:
        loss = None
        if isinstance(call.arguments, dict) and call.name:
            loss = dialect.loss(call.name, call.arguments, known)
        if loss is None:
            calls.append(call)
            continue
        losses.append(loss)
        if not loss.readable:
            return replace(block, fault=block.fault or loss.code), losses
        calls.append(replace(call, arguments=_read_back(call, dialect, known)))
    if not losses:
        return block, ()
    code = losses[0].code if block.untrained in (None, REPEAT) else block.untrained
    return replace(block, calls=tuple(calls), untrained=code), losses


def _read_back(call: DraftCall, dialect: Dialect, known: Signatures) -> dict[str, Json]:
    """Returns the arguments that the text of a call reads back as."""
    assert isinstance(call.arguments, dict), "the caller has checked"
    text = dialect.write(Call.of(call.name, call.arguments))
    (text_of_call,) = dialect.find(text, 0)
    return dialect.read(text_of_call, text, known).arguments


def trim(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Removes the white space at the edges of texts that the template removes (`trimmed`)."""
    how = options.style.trims
    if how == "none":
        return draft
    counts: Counter[str] = Counter()

    def cut(text: str) -> str:
        counts["trimmed"] += text != text.strip()
        return text.strip()

    def fitted(block: Block) -> Block:
        if how == "called" and not block.calls:
            return block
        texts = tuple(text for text in map(cut, block.texts) if text)
        if how == "called":
            return replace(block, texts=texts)
        calls = tuple(
            call if call.answer is None else replace(call, answer=cut(call.answer))
            for call in block.calls
        )
        return replace(block, texts=texts, reasoning=tuple(map(cut, block.reasoning)), calls=calls)

    blocks = [fitted(block) for block in draft.blocks]
    system = tuple(map(cut, draft.system)) if how == "all" else draft.system
    return replace(draft.having(blocks), system=system).counting(**counts)
