"""Steps on turns: roles, texts, thoughts; which turns are trained, and where a sample ends.

A turn is a target unless its block has an `untrained` code. `REPEAT` marks the model's own answer
that is a target elsewhere; every other code marks a foreign turn, which is not the model's answer
in this context. The option `untrained_turns` decides what happens to both (docs/context.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from builder.codes import UNTRAINED, meaning
from builder.conversation import LOST_RECORD, PREAMBLE, REPEAT, Json
from builder.jsonio import dumps
from builder.normalize.calls import call_fault
from builder.normalize.draft import Block, Draft, DraftCall, calls_in, join
from builder.normalize.options import NormalizeOptions
from builder.normalize.tools import offered_names, tools
from builder.problem import Problem
from builder.qwen3.calls import Dialect, LostCall, Signatures, signatures
from builder.qwen3.templates import Thoughts
from builder.readers.toolkit.comparison import has_no_arguments
from builder.sample import Call
from builder.text import are_plain, break_tokens, clean, map_strings, token_pattern


def system(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Makes one system text and drops, replaces or supplies it as the options say.

    Counts `system_joined`, `system_dropped`, `system_replaced`, `system_supplied`.
    """
    logged = "\n\n".join(draft.system)
    draft = draft.counting(system_joined=max(len(draft.system) - 1, 0))
    if options.system == "drop":
        return replace(draft.counting(system_dropped=bool(logged)), system=())
    supplied = options.supplied_system
    lacks = "system" in draft.context.missing  # what is logged followed the agent's own prompt
    if supplied is not None and logged and lacks and options.system != "replace":
        text = supplied if logged in supplied else f"{supplied}\n\n{logged}"
        return replace(draft.counting(system_supplied=1), system=(text,))
    if supplied is not None and (options.system == "replace" or not logged):
        code = "system_replaced" if logged else "system_supplied"
        return replace(draft.counting(**{code: 1}), system=(supplied,) if supplied.strip() else ())
    kept = (logged,) if logged else ()
    return draft if kept == draft.system else replace(draft, system=kept)


def turns(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Drops empty turns and joins consecutive user turns.

    Under `harness: drop` a turn of harness text is dropped (`harness_text`), unless it is the only
    turn that an assistant turn answers (`harness_prompt`). Of two answers in a row, the first is
    left out if records of it may be lost (`beside_lost`).
    """
    blocks: list[Block] = []
    counts: Counter[str] = Counter()
    pending: Block | None = None  # harness text that has not been answered yet
    ends_at_server = options.untrained_turns != "weight"
    for block in draft.blocks:
        last = blocks[-1] if blocks else None
        if block.role == "assistant" and not block.texts and not block.calls:
            is_read = block.fault in (None, LOST_RECORD.code)
            if is_read and (block.untrained != "server_tool" or not ends_at_server):
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
        elif last.fault == LOST_RECORD.code and not last.calls:
            counts["beside_lost"] += 1  # its calls may be lost, and this answers their results
            counts["reasoning_dropped"] += bool(last.reasoning)
            blocks[-1] = block
        else:
            blocks.append(block)  # another answer (`successive`, `cut`)
    counts["harness_text"] += len(pending.texts) if pending else 0
    return draft.having(blocks, counts)


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


def reasoning(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Drops thoughts, or keeps them where the template shows them.

    Most show those after the last user turn (`last_query_index` of the template); some
    show all, some none. In units other than the conversation each example has its own last query,
    so `builder.normalize.units` drops the hidden thoughts.
    """
    style = options.style.thoughts
    query = max(at for at, block in enumerate(draft.blocks) if block.role == "user")
    shown = 0 if style is Thoughts.every or options.unit != "conversation" else query + 1
    if options.reasoning != "keep" or not style.has_blocks:
        shown = len(draft.blocks)
    blocks = []
    dropped = 0
    for at, block in enumerate(draft.blocks):
        texts = [text.strip("\n") for text in block.reasoning if text.strip()]
        dropped += bool(texts) and at < shown
        thoughts = ("\n\n".join(texts),) if texts and at >= shown else ()
        blocks.append(block if thoughts == block.reasoning else replace(block, reasoning=thoughts))
    draft = draft.having(blocks, {"reasoning_dropped": dropped})
    is_dropped = draft.changes.get("reasoning_dropped")
    is_kept = any(block.reasoning for block in blocks)
    return replace(draft, reasoning="kept" if is_kept else "dropped" if is_dropped else "none")


def characters(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Cleans the Unicode of logged text and breaks up its control tokens (see `builder.text`).

    Option `control_tokens`: `context` breaks tokens up in untrained text and rejects conversations
    with tokens in trained text, `neutralise` breaks them up everywhere, `reject` rejects
    conversations with tokens anywhere. Counts `control_tokens`.
    """
    counts: Counter[str] = Counter()
    pattern = token_pattern(options.added_tokens)
    in_context: list[str] = []
    in_trained: list[str] = []

    def cleaned(text: str) -> str:
        return clean(text, counts)

    def broken(text: str, markers: list[str]) -> str:
        text = cleaned(text)
        broken_text, n = break_tokens(text, pattern)
        if n:
            markers.extend(pattern.findall(text))
        return broken_text

    def defined(tool: Json) -> Json:
        text = dumps(tool) if are_plain(options.added_tokens) else ""
        same = text and text.isascii() and not pattern.search(text)
        return tool if same else map_strings(tool, partial(broken, markers=in_context))

    def called(call: DraftCall) -> DraftCall:
        name, arguments, text = cleaned(call.name), call.arguments, dumps(call.arguments)
        if not text.isascii():
            arguments = map_strings(arguments, cleaned)
            text = dumps(arguments)
        answer = None if call.answer is None else broken(call.answer, in_context)
        return replace(call, name=name, arguments=arguments, answer=answer, written=text)

    def written(block: Block) -> Block:
        is_target = block.role == "assistant" and block.untrained is None
        markers = in_trained if is_target else in_context
        texts = tuple(broken(text, markers) for text in block.texts)
        thoughts = tuple(broken(text, markers) for text in block.reasoning)
        if not block.calls and texts == block.texts and thoughts == block.reasoning:
            return block
        calls = tuple(map(called, block.calls))
        for call in calls:
            markers.extend(pattern.findall(call.written))
        return replace(block, texts=texts, reasoning=thoughts, calls=calls)

    try:
        blocks = tuple(map(written, draft.blocks))
        tools = tuple(map(defined, draft.tools or ()))
        system = tuple(broken(text, in_context) for text in draft.system)
    except KeyError:
        return Problem("nfc", "conversation", "two keys of an object become equal in NFC", 0)
    for call in calls_in(blocks):
        if match := pattern.search(call.name):
            return Problem("control_tokens", "conversation", f"{match[0]} in a tool's name", 0)
    tokens = in_context + in_trained
    refused = {"reject": tokens, "context": in_trained}.get(options.control_tokens)
    if refused:
        names = ", ".join(dict.fromkeys(refused))
        where = "logged text" if options.control_tokens == "reject" else "trained text"
        return Problem("control_tokens", "conversation", f"{where} holds {names}"[:200], 0)
    counts["control_tokens"] += len(tokens)
    return replace(draft, blocks=blocks, system=system, tools=tools).counting(**counts)


_SECOND_ANSWER = "second_answer"
TOKENS = "control_tokens"
_SHORT = 40
"""Maximum number of characters of a tool's name in a message."""
_LISTED = 5
"""Maximum number of offered tools that a message names."""
_NO_THOUGHT = "no_thought"

LOST = ("xml_types", "xml_markup")
"""Codes of the model's own answers with a call that a server's parser would not give back.

They are shown in their true context, so they stay as context unless `untrained_turns: reject`.
"""

_SHOWABLE = frozenset({"bad_call", "bad_arguments", "truncated", "truncated_answer"})
"""Faults of turns that later requests showed as text only.

After any other fault the context is unknown, because it hides part of the turn; but what stands
around a hole is there (`lost_record`).
"""


def mask(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Turns the targets of the kinds in `normalize.mask` into foreign turns (`masked_turns`).

    The codes are `error`, `denied`, `interrupted`, `repeated` (a turn that makes exactly the
    calls of the preceding assistant turn) and `no_thought`. Turns of a rewound branch already are
    foreign; without `rewound` in the list they are targets.
    """
    codes = options.mask
    blocks: list[Block] = []
    previous: list[tuple[str, object]] = []
    masked = 0
    for block in draft.blocks:
        if block.role != "assistant":
            blocks.append(block)
            continue
        code = block.untrained
        if code == "rewound" and "rewound" not in codes:
            code = None
        calls: list[tuple[str, object]] = [(call.name, call.arguments) for call in block.calls]
        if code is None:
            code = next((call.failure for call in block.calls if call.failure in codes), None)
            if code is None and "repeated" in codes and calls and calls == previous:
                code = "repeated"
            if code is None and _NO_THOUGHT in codes and not any(map(str.strip, block.reasoning)):
                code = _NO_THOUGHT
            masked += code is not None
        previous = calls
        blocks.append(block if code == block.untrained else replace(block, untrained=code))
    return draft.having(blocks, {"masked_turns": masked})


def successive(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Makes an answer that follows another one directly a foreign turn (`second_answer`).

    The log does not show what the model answered with it. Roles must alternate: where it stays as
    context, both are one foreign turn (`assistant_joined`), and `history` is missing from what
    follows, unless that is recorded. What the model says before its calls is no answer: without
    calls it is left out before another answer (`preamble_dropped`), and else it was cut off.
    """
    draft = _without_preambles(draft)
    last_target = _last_target(draft, options, _hidden(draft, options))
    blocks: list[Block] = []
    joined = 0
    for at, block in enumerate(draft.blocks):
        last = blocks[-1] if blocks else None
        if block.role == "assistant" and joined and not draft.recorded:
            block = block.lacking("history")  # noqa: PLW2901 - refined
        if last is None or last.role != "assistant" or block.role != "assistant" or last.calls:
            blocks.append(block)
            continue
        code = _foreign(last) or _foreign(block) or _SECOND_ANSWER
        if at < last_target:
            blocks[-1] = replace(join(last, block), untrained=code)
            joined += 1
        else:
            blocks.append(replace(block, untrained=code))
    return draft.having(blocks, {"assistant_joined": joined})


def _without_preambles(draft: Draft) -> Draft:
    if not any(block.speaker == PREAMBLE for block in draft.blocks):
        return draft
    blocks: list[Block] = []
    dropped = 0
    for block in draft.blocks:
        if blocks and blocks[-1].speaker == PREAMBLE and not blocks[-1].calls:
            if block.role == "assistant":
                before = replace(blocks.pop(), texts=(), speaker=None)
                block = join(before, block)  # noqa: PLW2901 - refined
                dropped += 1
            else:
                blocks[-1] = replace(blocks[-1], untrained=blocks[-1].untrained or "truncated")
        blocks.append(block)
    if blocks and blocks[-1].speaker == PREAMBLE and not blocks[-1].calls:
        blocks[-1] = replace(blocks[-1], untrained=blocks[-1].untrained or "truncated")
    return draft.having(blocks, {"preamble_dropped": dropped})


def _foreign(block: Block) -> str | None:
    return None if block.untrained == REPEAT else block.untrained


def _last_target(draft: Draft, options: NormalizeOptions, hidden: _Hidden | None) -> float:
    """Returns the index of the last target: foreign turns before it stay as context.

    Infinite if all foreign turns stay, -1 if none does. Answers in a row stay, as one foreign turn,
    only if more targets follow than they have, and never if they are of two participants: each saw
    the other's as a user's.
    """
    if options.untrained_turns == "weight":
        return inf
    if options.untrained_turns != "context" and not draft.recorded:
        return -1
    blocks = draft.blocks[: None if hidden is None else hidden.at + hidden.stays]
    last, following = -1, 0
    for at in range(len(blocks) - 1, -1, -1):
        block, before = blocks[at], blocks[at - 1] if at else None
        if before is not None and block.role == before.role == "assistant" and not before.calls:
            if before.speaker != block.speaker:
                last, following = -1, 0
            continue  # a later answer of a row
        after = blocks[at + 1] if at + 1 < len(blocks) else None
        is_row = after is not None and after.role == block.role == "assistant" and not block.calls
        target = _is_target(block)
        if is_row and following <= target:
            last, following = (at if target else -1), int(target)
        elif target and not is_row:
            last, following = max(last, at), following + 1
    return last


def mark_tokens(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Marks targets that contain control tokens, so that `cut` ends the conversation before them.

    Only for conversations in which trained text contains them (`control_tokens: context`).
    """
    pattern = token_pattern(options.added_tokens)

    def is_affected(block: Block) -> bool:
        thoughts = block.reasoning if options.reasoning == "keep" else ()
        written = [text for call in block.calls for text in (call.name, dumps(call.arguments))]
        return any(map(pattern.search, (*block.texts, *thoughts, *written)))

    blocks = [
        replace(block, fault=TOKENS) if _is_target(block) and is_affected(block) else block
        for block in draft.blocks
    ]
    return draft.having(blocks)


@dataclass(frozen=True, slots=True)
class _Hidden:
    """The first turn that cannot be shown, or after which nothing can be.

    at       its index
    problem  why
    stays    whether the conversation ends after it, and not before it
    calls    those with a fault of their own, and its code
    """

    at: int
    problem: Problem
    stays: bool = False
    calls: tuple[tuple[DraftCall, str], ...] = ()


def _hidden(draft: Draft, options: NormalizeOptions) -> _Hidden | None:
    for at, block in enumerate(draft.blocks):
        if block.role != "assistant":
            if block.fault is not None:
                return _Hidden(at, _unparsed(block, at))
            continue
        if block.untrained == "server_tool" and options.untrained_turns != "weight":
            problem = Problem("server_tool", f"turn {at}", _untrained(draft, block), records=0)
            return _Hidden(at, problem)
        if (fault := block.fault) is not None and not _is_showable(block):
            return _Hidden(at, _unparsed(block, at), calls=tuple((c, fault) for c in block.calls))
        faults = tuple((call, code) for call in block.calls if (code := call_fault(call)))
        if faults:
            lost = any(has_no_arguments(call.arguments) for call, _ in faults)
            names = _names(call for call, _ in faults)
            if faults[0][1] == "bad_arguments":
                names += " without arguments, which the tool requires" if lost else _NO_OBJECT
            return _Hidden(at, Problem(faults[0][1], f"turn {at}", names, 0), calls=faults)
        no_result = [call for call in block.calls if call.answer is None]
        is_open = at == len(draft.blocks) - 1 and (
            options.end == "call" or (draft.complete and len(no_result) == len(block.calls))
        )
        if is_open or not no_result:
            continue
        problem = Problem("unanswered", f"turn {at}", _names(no_result), records=0)
        stays = options.end == "call" and block.untrained is None and block.fault is None
        calls = () if stays else tuple((call, "unanswered") for call in no_result)
        return _Hidden(at, problem, stays, calls)
    return None


def cut(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Ends the conversation where later turns cannot be shown in their true context.

    - Before a turn that cannot be written or shown: with `bad_arguments` or a `bad_name` in a call,
      with a part that could not be parsed (its code), with a server-side tool unless turns that
      are not trained have weight 0 (`untrained_turns: weight`).
    - Before a user turn with a message that has only parts of unknown types.
    - After a turn with calls without results (`unanswered`) that is not the last; before it if it
      is not a target or the conversation must end with an answer (`end: answer`).
    - Before a foreign turn (its code) after which no target follows, or always under
      `untrained_turns: split`, unless a target that is a recorded response follows.

    A dropped call has the code of its own fault, else that of the foreign turn that ends the
    conversation, else `after_` and the code of the reason. Counts `turns_cut`.
    """
    hidden = _hidden(draft, options)
    last_target = _last_target(draft, options, hidden)
    blocks = [
        replace(block, untrained=_foreign(block) or block.fault, fault=None)
        if _is_showable(block)
        else block
        for block in draft.blocks
    ]
    # A client's turn that cannot be shown hides recorded answers: that is the code.
    end = len(blocks) if hidden is None else hidden.at + (not draft.recorded)
    for at, block in enumerate(blocks[:end]):
        if (code := block.untrained) is None:
            continue
        problem = Problem(code, f"turn {at}", _untrained(draft, block), records=0)
        if options.untrained_turns == "reject":
            return problem
        if at > last_target and code not in (REPEAT, *LOST):
            return _ended(draft, blocks, at, problem, code)
    if hidden is None:
        return draft.having(blocks)
    for call, code in hidden.calls:
        draft = draft.dropping([call], code)
    code = "server_tool" if hidden.problem.code == "server_tool" else None
    return _ended(draft, blocks, hidden.at + hidden.stays, hidden.problem, code)


def _is_showable(block: Block) -> bool:
    if block.fault == LOST_RECORD.code:
        return block.role == "assistant" and bool(block.content.strip() or block.calls)
    return block.role == "assistant" and block.fault in _SHOWABLE and bool(block.content.strip())


_NO_OBJECT = ", whose arguments are not a JSON object"
_WHY = {"truncated": "an answer that was cut off", "media": "an answer with images or other media"}
"""{code: reason} where the code means other things elsewhere."""


def _why(code: str, block: Block) -> str:
    text = _WHY.get(code) or meaning(code)
    if code != "bad_call" or not block.unknown:
        return text
    return (
        f"{text}: it has {block.unknown}, and no name that can be read;"
        " `builder inspect FILE --suggest-mapping` proposes a mapping"
    )


def _untrained(draft: Draft, block: Block) -> str:
    """Says why a foreign turn ends a sample; for a tool that was not offered, which."""
    code = block.untrained or ""
    if code != "undefined_tool":
        return _why(code, block) or "this turn may not be trained"
    offered = sorted(offered_names(draft.tools or ()) or ())
    called = _names(call for call in block.calls if call.name not in offered)
    listed = ", ".join(name[:_SHORT] for name in offered[:_LISTED])
    more = f" and {len(offered) - _LISTED} more" if len(offered) > _LISTED else ""
    return f"{called}; offered: {listed}{more}" if offered else called


def _unparsed(block: Block, number: int) -> Problem:
    assert block.fault is not None, "the caller found one"
    is_part = block.unknown and block.fault == "unknown_part"
    what = f"a part of type {block.unknown!r}" if is_part else _why(block.fault, block)
    what = what or "it could not be parsed"
    return Problem(block.fault, f"turn {number}", what, records=0)


def _names(calls: Iterable[DraftCall]) -> str:
    return "calls: " + ", ".join(call.name[:_SHORT] for call in calls)


def _is_target(block: Block) -> bool:
    return block.role == "assistant" and block.untrained is None and block.fault is None


def _ended(
    draft: Draft, blocks: Sequence[Block], end: int, problem: Problem, code: str | None = None
) -> Draft:
    """Returns the draft cut before block `at`; drops the calls of the other blocks."""
    draft = draft.dropping(calls_in(blocks[end:]), code or f"after_{problem.code}")
    draft = draft.counting(turns_cut=len(blocks) - end)
    return replace(draft, blocks=tuple(blocks[:end]), cut=problem)


def end_with_target(draft: Draft, options: NormalizeOptions) -> Draft | Problem:
    """Ends the conversation with its last target, without the results of its calls.

    Cuts trailing user turns, results and turns that are not targets (`trailing_cut`). `end: answer`
    also cuts turns with calls (`no_final_answer`), except at the end of a complete conversation and
    under `unit: turn`. Counts `untrained_turns` (context only) and `repeated_turns` (trained again,
    in a sample without weights, unless `untrained_turns: weight`), and the former by code.
    """
    blocks = list(draft.blocks)
    if all(block.untrained for block in blocks if block.role == "assistant"):
        for block in blocks:
            draft = draft.dropping(block.calls, block.untrained or "no_target")
        return _nothing_left(draft)
    repeats = 0
    weighted = any(block.untrained not in (None, REPEAT) for block in blocks)
    if options.untrained_turns in ("context", "split") and not weighted:
        repeats = sum(block.untrained == REPEAT for block in blocks)
        blocks = [replace(b, untrained=None) if b.untrained == REPEAT else b for b in blocks]
    count = len(blocks)
    whole = draft.complete and draft.cut is None
    may_call = options.end == "call" or whole or options.unit == "turn"
    while blocks:
        last = blocks[-1]
        if last.role == "assistant" and last.untrained is None and (may_call or not last.calls):
            break
        draft = draft.dropping(blocks.pop().calls, last.untrained or "no_final_answer")
    draft = draft.counting(trailing_cut=count - len(blocks), repeated_turns=repeats)
    if not blocks:
        return _nothing_left(draft)
    last = blocks[-1]
    if any(call.answer is not None for call in last.calls):
        draft = draft.counting(trailing_cut=1)
        blocks[-1] = last.with_calls(partial(replace, answer=None))
    codes = Counter(b.untrained for b in blocks if b.untrained is not None)
    why = {f"{UNTRAINED}{code}": count for code, count in sorted(codes.items())}
    return draft.having(blocks, {"untrained_turns": codes.total(), **why})


def _nothing_left(draft: Draft) -> Problem:
    """Returns why no target is left: the cut that removed the last one, or a missing turn."""
    if draft.cut is not None:
        return draft.cut
    if not draft.blocks:
        return Problem("no_user", "conversation", "no user turn", records=0)
    if not any(block.role == "assistant" for block in draft.blocks):
        return Problem("no_assistant", "conversation", "no assistant turn answers a user turn", 0)
    codes = {block.untrained for block in draft.blocks if block.role == "assistant"}
    if codes == {_NO_THOUGHT}:
        return Problem(_NO_THOUGHT, "conversation", "no assistant turn has a thought", records=0)
    if None not in codes:
        return Problem("no_target", "conversation", "no turn may be trained", 0)
    return Problem("no_final_answer", "conversation", "ends with calls, no answer follows", 0)


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
        assert isinstance(call.arguments, dict), "it has a loss"
        text = dialect.write(Call.of(call.name, call.arguments))
        (written,) = dialect.find(text, 0)
        read = dialect.read(written, text, known)
        calls.append(replace(call, arguments=read.arguments))
    if not losses:
        return block, ()
    code = losses[0].code if block.untrained in (None, REPEAT) else block.untrained
    return replace(block, calls=tuple(calls), untrained=code), losses


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
        block = block.with_calls(
            lambda call: call if call.answer is None else replace(call, answer=cut(call.answer))
        )
        return replace(block, texts=texts, reasoning=tuple(map(cut, block.reasoning)))

    blocks = [fitted(block) for block in draft.blocks]
    system = tuple(map(cut, draft.system)) if how == "all" else draft.system
    return replace(draft.having(blocks), system=system).counting(**counts)
