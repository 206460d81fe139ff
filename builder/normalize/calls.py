"""Steps on calls: answers, arguments, the cut before what cannot be kept, parallel calls."""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import replace
from operator import is_

from builder.conversation import Data, Json, Media, Text, ToolResult
from builder.jsonio import JsonFault, loads
from builder.normalize.draft import Block, Draft, DraftCall, calls_in, part_text
from builder.normalize.options import NormalizeOptions
from builder.problem import Problem

_BAD_NAME = re.compile(r'["\\\x00-\x1f\x7f-\x9f]')


def pair(draft: Draft, _: NormalizeOptions) -> Draft | Problem:
    """Results to calls inside the turn: by id, then by name, then by order.

    Ids may repeat (the first unanswered call takes the result) or be missing. What answers no
    call of its turn is an `orphan_result`; results out of order are `results_reordered`.
    """
    counts: Counter[str] = Counter()
    blocks = [_paired(block, counts) if block.results else block for block in draft.blocks]
    return draft.having(blocks, counts)


def _paired(block: Block, counts: Counter[str]) -> Block:
    given: dict[int, ToolResult] = {}  # position of the call → its result, in order of the results
    by_id: dict[str, deque[int]] = {}
    for at, call in enumerate(block.calls):
        if call.id is not None:
            by_id.setdefault(call.id, deque()).append(at)
    later = []
    for result in block.results:
        named = by_id.get(result.call_id) if result.call_id is not None else None
        if named:
            given[named.popleft()] = result
        else:
            later.append(result)
    unanswered = [at for at in range(len(block.calls)) if at not in given]
    without_id = [at for at in unanswered if block.calls[at].id is None]
    for result in later:
        # An id that names no call of the turn can only belong to a call without one.
        fitting = unanswered if result.call_id is None else without_id
        first = next(
            (at for at in fitting if result.name in (None, block.calls[at].name)),
            None,
        )
        if first is None:
            counts["orphan_result"] += 1
            continue
        given[first] = result
        unanswered.remove(first)
        if block.calls[first].id is None:
            without_id.remove(first)
    if list(given) != sorted(given):
        counts["results_reordered"] += 1
    calls = tuple(
        replace(call, answer=_result_text(given[at], counts)) if at in given else call
        for at, call in enumerate(block.calls)
    )
    return replace(block, calls=calls, results=())


def _result_text(result: ToolResult, counts: Counter[str]) -> str:
    """A result as the text of a tool response: a line for each part, values as JSON."""
    parts = [part for part in result.content if not (isinstance(part, Text) and part.harness)]
    counts["harness_text"] += len(result.content) - len(parts)
    for part in parts:
        counts["media"] += isinstance(part, Media)
        counts["json_result"] += isinstance(part, Data)
    if len(parts) > 1:
        counts["result_joined"] += 1
    return "\n".join(part_text(part) for part in parts)


def arguments(draft: Draft, _: NormalizeOptions) -> Draft | Problem:
    """Decode the arguments; what is no JSON object stays as it is: `cut` decides.

    "" and null become {} (`empty_arguments`), twice encoded ones are opened (`double_encoded`).
    """
    if not any(block.calls for block in draft.blocks):
        return draft
    counts: Counter[str] = Counter()
    blocks = tuple(_with_decoded(block, counts) if block.calls else block for block in draft.blocks)
    called = tuple(
        (call.name, call.arguments)
        for call in calls_in(blocks)
        if isinstance(call.arguments, dict) and _fault(call) is None
    )
    return replace(draft, blocks=blocks, called=called).counting(**counts)


def _with_decoded(block: Block, counts: Counter[str]) -> Block:
    calls = tuple(_with_arguments(call, counts) for call in block.calls)
    return block if all(map(is_, calls, block.calls)) else replace(block, calls=calls)


def _with_arguments(call: DraftCall, counts: Counter[str]) -> DraftCall:
    decoded = _decoded(call.arguments, counts)
    return call if decoded is call.arguments else replace(call, arguments=decoded)


def _decoded(arguments: Json, counts: Counter[str]) -> Json:
    value = arguments
    try:
        for _ in range(2):
            if value is None or (isinstance(value, str) and not value.strip()):
                counts["empty_arguments"] += 1
                return {}
            if not isinstance(value, str):
                break
            counts["double_encoded"] += value is not arguments
            value = loads(value)
    except JsonFault:
        return arguments
    if value is None:
        counts["empty_arguments"] += 1
        return {}
    return value if isinstance(value, dict) else arguments


def _fault(call: DraftCall) -> str | None:
    """The code of what makes a call unusable, or None."""
    if not isinstance(call.arguments, dict):
        return "bad_arguments"
    if not call.name or _BAD_NAME.search(call.name):
        return "bad_name"
    return None


def cut(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Cut before the first turn that cannot be kept whole.

    `unanswered` (a call without a result), `bad_arguments`, `bad_name`, or the code of what could
    not be parsed. The calls at fault are dropped under that code, all others from there on as
    `cut`. A complete conversation may end with a turn whose calls nothing answers.
    """
    for at, block in enumerate(draft.blocks):
        final = draft.complete and at == len(draft.blocks) - 1
        faults = {call.ordinal: _fault(call) for call in block.calls}
        if not (final and all(call.answer is None for call in block.calls)):
            for call in block.calls:
                if call.answer is None:
                    faults[call.ordinal] = faults[call.ordinal] or "unanswered"
        codes = [code for code in faults.values() if code]
        if block.fault:
            codes.append(block.fault)
        if not codes:
            continue
        code = codes[0]
        names = ", ".join(call.name[:40] for call in block.calls if faults[call.ordinal])
        problem = Problem(code, f"turn {at}", f"calls: {names}" if names else code, records=0)
        if "unanswered" in codes and options.unanswered_calls == "reject":
            return replace(problem, code="unanswered")
        faulty = {ordinal: fault or "cut" for ordinal, fault in faults.items()}
        draft = replace(draft, dropped={**faulty, **draft.dropped})
        draft = draft.dropping(calls_in(draft.blocks[at + 1 :]), "cut")
        draft = draft.counting(turns_cut=len(draft.blocks) - at)
        return replace(draft, blocks=draft.blocks[:at], cut=problem)
    return draft


def parallel(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Several calls in one turn: kept, split into turns of one call each, or the reject."""
    if options.parallel_calls == "keep" or all(len(block.calls) < 2 for block in draft.blocks):
        return draft
    if options.parallel_calls == "reject":
        return Problem("parallel_calls", "conversation", "several calls in one turn", records=0)
    blocks: list[Block] = []
    for block in draft.blocks:
        if len(block.calls) < 2:
            blocks.append(block)
            continue
        draft = draft.counting(parallel_split=1)
        blocks.append(replace(block, calls=block.calls[:1]))
        if block.calls[0].answer is None:  # a last turn: a server would have stopped here
            draft = draft.dropping(block.calls[1:], "parallel_calls")
            continue
        blocks += [Block("assistant", calls=(call,)) for call in block.calls[1:]]
    return draft.having(blocks)
