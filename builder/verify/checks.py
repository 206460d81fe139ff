"""Implements the checks that need no template (docs/output.md lists them)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from builder.dataset.samples import unrenderable
from builder.finding import CheckFinding, context
from builder.qwen3.dialect import ParseFault
from builder.qwen3.json_calls import UNFIT_NAME, breaks_json
from builder.qwen3.parse import known_tools, read_turn, split_responses
from builder.qwen3.style import SPECIFIED, Style
from builder.sample import Call, Dialogue, Sample, Turn
from builder.verify.schemas import BrokenSchemaFault, violations


def well_formed(sample: Sample) -> Iterator[CheckFinding]:
    """Yields findings that prevent rendering, or training."""
    yield from unrenderable(sample)
    if sample.weights and not sample.targets:
        yield CheckFinding("weight", "every assistant message has weight 0: nothing is trained")


def meaning(sample: Sample, style: Style = SPECIFIED) -> tuple[Dialogue | None, list[CheckFinding]]:
    """Returns (structured form of a sample, []), or (None, findings) if it has none."""
    known = known_tools(sample, style)
    turns: list[Turn] = []
    findings: list[CheckFinding] = []
    weights = sample.weights or (None,) * len(sample.messages)
    thoughts = sample.thoughts or ("",) * len(sample.messages)
    rows = zip(sample.messages, weights, thoughts, strict=True)
    for index, ((role, content), weight, thought) in enumerate(rows):
        try:
            turn = read_turn(role, content, weight, thought, style, known)
        except ParseFault as fault:
            excerpt = context(content, fault.offset)
            findings.append(
                CheckFinding(fault.code, fault.detail, index, fault.offset, found=excerpt)
            )
            continue
        if turn.role == "user" and "<tool_response>" in content:
            message = "<tool_response> markup in a turn that is not made of its blocks alone"
            findings.append(CheckFinding("pairing", message, index, found=context(content, 0)))
        turns.append(turn)
    return (None if findings else Dialogue(tuple(turns), sample.tools)), findings


def misread(read: Dialogue | None, intended: Dialogue) -> Iterator[CheckFinding]:
    """Checks that our own sample parses back into the dialogue that it was made from.

    No comparison of renderings detects logged text that looks like calls or tool responses.
    """
    if read is None or read.turns == intended.turns:
        return
    pairs = zip(read.turns, intended.turns, strict=False)
    index = next((at for at, (one, two) in enumerate(pairs) if one != two), None)
    yield CheckFinding("inverse", "the flat form reads back as a different dialogue", index)


def order(
    sample: Sample, style: Style = SPECIFIED, *, late_system: bool = False
) -> Iterator[CheckFinding]:
    """Checks that roles alternate as the check `order` requires, and that no turn is empty.

    `late_system` allows system messages after the first turn (`normalize.late_system: keep`, or a
    foreign dataset). The alternation of the other roles ignores them, except that they separate two
    assistant turns.
    """
    before = ""
    asked = False
    for index, (role, content) in enumerate(sample.messages):
        is_answer = role == "user" and split_responses(content, style) is not None
        if role == "system" and index and not late_system:
            yield CheckFinding("order", "a system message that is not the first", index)
        if role == "assistant" and not asked:
            yield CheckFinding("order", "an assistant turn before any user turn", index)
        if before == role == "assistant":
            yield CheckFinding("order", "two assistant turns in a row", index)
        if role == "user" and (before == "user" or (before == "responses" and is_answer)):
            yield CheckFinding("order", "two user turns in a row", index)
        if not content.strip():
            yield CheckFinding("order", "an empty turn", index)
        asked = asked or role == "user"
        before = "responses" if is_answer else role
    if before != "assistant":
        yield CheckFinding("order", "does not end with an assistant turn", len(sample.messages) - 1)


def calls(
    sample: Sample, meant: Dialogue, read: Dialogue | None, style: Style = SPECIFIED
) -> Iterator[CheckFinding]:
    """Checks that the dialect's pattern finds the intended calls and no others.

    The pattern also searches thoughts. `read` is the dialogue parsed from the text, or None.
    """
    hidden = any("<tool_call>" in turn.reasoning for turn in meant.turns)
    if read is not None and meant.turns == read.turns and not hidden:
        return
    known = known_tools(sample, style)
    turns = [turn.calls for turn in meant.turns if turn.role == "assistant"]
    texts = [
        (index, text) for index, (role, text) in enumerate(sample.messages) if role == "assistant"
    ]
    if len(turns) != len(texts):
        yield CheckFinding("calls", f"{len(texts)} assistant turns, {len(turns)} intended")
        return
    for (index, content), intended in zip(texts, turns, strict=True):
        read_calls: list[Call] = []
        try:
            calls_in = style.dialect.find(content, 0)
            read_calls += [style.dialect.read(text, content, known) for text in calls_in]
        except ParseFault as fault:
            yield CheckFinding(fault.code, fault.detail, index, fault.offset)
            continue
        want = [(call.name, call.plain) for call in intended]
        have = [(call.name, call.plain) for call in read_calls]
        if want != have:
            yield CheckFinding(
                "calls",
                "the calls found are not those intended",
                index,
                expected=str(want)[:200],
                found=str(have)[:200],
            )


def pairing(meant: Dialogue) -> Iterator[CheckFinding]:
    """Checks that each call has a response, except the calls of the last turn."""
    open_calls = 0
    for index, turn in enumerate(meant.turns):
        if turn.role == "tool":
            if len(turn.responses) != open_calls:
                message = f"{len(turn.responses)} tool responses answer {open_calls} calls"
                yield CheckFinding("pairing", message, index)
            open_calls = 0
            continue
        if open_calls:
            yield CheckFinding("pairing", f"{open_calls} calls without a response", index - 1)
        open_calls = len(turn.calls)


def losses(
    sample: Sample, meant: Dialogue, targets: Collection[int], style: Style
) -> Iterator[CheckFinding]:
    """Checks that a server's parser gives back each call of the target turns, types included.

    It must find no other call in their texts.
    """
    if style.dialect.plain:
        return
    known = known_tools(sample, style)
    ordinal = -1
    for index, turn in enumerate(meant.turns):
        ordinal += turn.role == "assistant"
        if turn.role != "assistant" or ordinal not in targets:
            continue
        lost = [style.dialect.loss(call.name, call.arguments, known) for call in turn.calls]
        for loss in (*lost, style.dialect.stray(turn.content)):
            if loss is not None:
                yield CheckFinding(loss.code, loss.reason, index)


_CLOSE = "</tool_call>"


def breaking(meant: Dialogue) -> Iterator[CheckFinding]:
    """Yields a finding for each call at whose argument inference engines end the call too early."""
    for index, turn in enumerate(meant.turns):
        for call in turn.calls:
            if _CLOSE in call.plain:
                message = f"{call.name[:80]}: an argument contains {_CLOSE}"
                yield CheckFinding("engine_breaks_call", message, index)


def tools(
    sample: Sample, meant: Dialogue, schema: str
) -> tuple[list[CheckFinding], list[CheckFinding]]:
    """Returns (findings, warnings) for the called names and their arguments."""
    hard: list[CheckFinding] = []
    soft: list[CheckFinding] = []
    known: dict[str, str | None] = {}
    for tool, text in zip(sample.tools, sample.definitions, strict=True):
        assert isinstance(tool, dict), "checked before"
        function = tool["function"]
        assert isinstance(function, dict), "checked before"
        has_schema = function.get("parameters") is not None
        known.setdefault(str(function["name"]), text if has_schema else None)
    breaks = hard if schema == "reject" else soft
    for index, turn in enumerate(meant.turns):
        for call in turn.calls:
            if breaks_json(call.name):
                hard.append(CheckFinding("tools", f"{call.name[:80]!r}: {UNFIT_NAME}", index))
            elif call.name not in known:
                if not turn.trained:
                    continue  # the model called a tool that was not offered: context only
                hard.append(
                    CheckFinding("tools", f"{call.name[:80]!r} is called but not defined", index)
                )
            elif (definition := known[call.name]) is not None:
                try:
                    violated = violations(definition, call.arguments)
                except BrokenSchemaFault as fault:
                    soft.append(CheckFinding(fault.code, f"{call.name[:80]}: {fault}", index))
                    continue
                breaks += [
                    CheckFinding("schema", f"{call.name[:80]}: {text}", index) for text in violated
                ]
    return hard, soft
