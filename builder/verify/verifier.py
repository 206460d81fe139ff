"""Proves samples: runs all checks (docs/output.md) on every sample.

The reference is the target tokenizer's `apply_chat_template`. All findings of a sample are
collected; checks that make no sense after an earlier finding are skipped.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from builder.brief import brief
from builder.conversation import Json, TokenIds
from builder.dataset.forms import unrenderable
from builder.finding import CheckFinding, context, differ
from builder.qwen3.calls import UNFIT_NAME, ParseFault, breaks_json, is_canonical
from builder.qwen3.flat import (
    known_tools,
    leading_thought,
    parse,
    read_turn,
    split_responses,
    structured,
)
from builder.qwen3.render import (
    MODES,
    Rendering,
    Spans,
    in_parity,
    render_sample,
    spans,
    tokens_by_part,
    tools_block,
)
from builder.qwen3.templates import SPECIFIED, Style
from builder.qwen3.tokenizer import Target, target_for
from builder.qwen3.tokens import TokenSequence
from builder.sample import Call, Dialogue, Sample, Turn
from builder.text import counted
from builder.verify.options import VerifyOptions
from builder.verify.schemas import BrokenSchemaFault, violations

# -- implements the checks that need no template (docs/output.md lists them) -----------------------


def _well_formed(sample: Sample) -> Iterator[CheckFinding]:
    yield from unrenderable(sample)
    if sample.weights and not sample.targets:
        yield CheckFinding("weight", "every assistant message has weight 0: nothing is trained")


def _structured(
    sample: Sample, style: Style = SPECIFIED
) -> tuple[Dialogue | None, list[CheckFinding]]:
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


def _misread(read: Dialogue | None, intended: Dialogue) -> Iterator[CheckFinding]:
    """Checks that our own sample parses back into the dialogue that it was made from.

    No comparison of renderings detects logged text that looks like calls or tool responses.
    """
    if read is None or read.turns == intended.turns:
        return
    pairs = zip(read.turns, intended.turns, strict=False)
    index = next((at for at, (one, two) in enumerate(pairs) if one != two), None)
    yield CheckFinding("inverse", "the flat form reads back as a different dialogue", index)


def _order_faults(
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


def _call_faults(
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


def _pairing_faults(meant: Dialogue) -> Iterator[CheckFinding]:
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


def _losses(
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


def _breaking(meant: Dialogue) -> Iterator[CheckFinding]:
    """Yields a finding for each call at whose argument inference engines end the call too early."""
    for index, turn in enumerate(meant.turns):
        for call in turn.calls:
            if _CLOSE in call.plain:
                message = f"{call.name[:80]}: an argument contains {_CLOSE}"
                yield CheckFinding("engine_breaks_call", message, index)


def _argument_faults(
    sample: Sample, meant: Dialogue, *, strict: bool
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
    breaks = hard if strict else soft
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


# -- compares the tokens of a sample with those that a server or a trainer recorded ----------------

_LOOK = 64
"""Tokens from a difference on that are decoded to find its cause."""

_SAME = 8
"""Characters after white space that must agree for it to be the only difference."""

_Ids = NDArray[np.uint32]
_Decode = Callable[[list[int]], str]


@dataclass(frozen=True, slots=True)
class TokenComparison:
    """The result of comparing a sample: equal, or the first token that differs.

    at        its position in the sample; None: all are equal
    cause     the first probable cause that applies (docs/parity.md), or ""
    sample    the text of the token in the sample, "" at its end
    recorded  the text of the recorded token, "" at its end or if the tokenizer does not have it
    """

    at: int | None = None
    cause: str = ""
    sample: str = ""
    recorded: str = ""


def compare(
    turns: Sequence[tuple[int, TokenIds]],
    tokens: TokenSequence,
    answers: Spans,
    tails: Collection[str],
    decode: _Decode,
) -> TokenComparison:
    """Compares a sample with recorded ids and returns the first difference.

    `turns` are the trained turns with ids: (index in `answers`, ids). `answers` are the positions
    of the assistant turns without their headers, `tails` what the generation prompts of the modes
    have after the header. `decode` returns the text of ids.
    """
    differences: list[tuple[int, _Ids]] = []
    last, ids = turns[-1]
    if ids.prompt is not None:
        whole = np.array(ids.prompt + ids.answer, dtype=np.uint32)
        position = _difference(tokens, 0, whole, answers[last][1])
        differences += [(position, whole[position:])] if position is not None else []
        turns = turns[:-1]
    for turn, ids in turns:
        differences += _of_answer(ids, tokens, answers[turn], tails)
    if not differences:
        return TokenComparison()
    position, recorded = min(differences, key=lambda item: item[0])
    return _explained(tokens, position, recorded, decode)


def _of_answer(
    ids: TokenIds, tokens: TokenSequence, span: tuple[int, int], tails: Collection[str]
) -> list[tuple[int, _Ids]]:
    """Returns position and recorded ids of the first difference in a turn; [] without one.

    The mode of inference is not recorded, so the answer may begin after any of the `tails`; the
    one with the longest agreement counts.
    """
    answer = np.array(ids.answer, dtype=np.uint32)
    begin, end = span
    agreements: list[tuple[int, int]] = []
    for tail in sorted({"", *tails}):
        if not tokens.text.startswith(tail, begin):
            continue
        start = tokens.count_before(begin + len(tail))
        position = _difference(tokens, start, answer, end)
        if position is None:
            return []
        agreements.append((position - start, position))
    agreed, position = max(agreements)
    return [(position, answer[agreed:])]


def _difference(tokens: TokenSequence, start: int, recorded: _Ids, end: int) -> int | None:
    """Returns the first position from `start` on where ids differ; None: up to `end` none does.

    The token that ends the turn may be missing from the recorded ids.
    """
    ours = tokens.numbers[start : start + len(recorded)]
    different = np.flatnonzero(ours != recorded[: len(ours)])
    if len(different):
        return start + int(different[0])
    stop = tokens.count_before(end)
    reached = start + len(recorded)
    return None if stop - 1 <= reached <= stop else min(reached, stop)


def _explained(
    tokens: TokenSequence, position: int, recorded: _Ids, decode: _Decode
) -> TokenComparison:
    numbers = tokens.ids
    ours, theirs = numbers[position : position + _LOOK], recorded[:_LOOK].tolist()
    first, other = decode(ours[:1]), decode(theirs[:1])
    before = decode(numbers[:position])
    codes = _causes(position, before, (decode(ours), decode(theirs)), (first, other))
    return TokenComparison(position, next(codes, "text"), first, other)


def _causes(
    position: int, before: str, rest: tuple[str, str], first: tuple[str, str]
) -> Iterator[str]:
    ours, theirs = rest
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False))))
    differs_in_space = any(text[same : same + 1].isspace() for text in rest)
    following = [text[same:].lstrip() for text in rest]
    if position == 0 or (theirs and not first[1]):
        yield "tokenizer"
    begins = any(text.lstrip().startswith(("<think>", "</think>")) for text in rest)
    if begins or before.rfind("<think>") > before.rfind("</think>"):
        yield "thought"
    if first[0] and first[1] and same >= max(map(len, first)):
        yield "retokenised"
    if before.count("<|im_start|>") == 1 and before.startswith("<|im_start|>system"):
        yield "system"
    if before.rfind("<tool_call>") > before.rfind("</tool_call>"):
        yield "call"
    if not ours or not theirs:
        yield "end"
    if differs_in_space and following[0][:_SAME] == following[1][:_SAME]:
        yield "whitespace"


MAX_CHARS = 16 << 20
"""Code points up to which a rendering is verified (`too_long`). No context window is larger, and
tokenising takes memory: about 65 bytes per code point, up to 200 in a single word.
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of all checks of a sample; `findings` is empty if it is proven.

    `warnings` are schema violations unless required, and span boundaries inside a
    token. `text` is the template's rendering ("" if it failed), `render_sha256` that of its UTF-8.
    `spans` and `parity` describe the target turns: [start, end) in code points, and the modes in
    which each is in parity with inference (`builder.qwen3.render`). `trained_tokens` are those of
    the spans, `tokens_by_part` those of each part (`builder.qwen3.render`), `token_counts` is
    "estimate" without the model's tokenizer. `recorded` compares the tokens with those in the log;
    None if it has none.
    """

    findings: tuple[CheckFinding, ...]
    warnings: tuple[CheckFinding, ...] = ()
    text: str = ""
    spans: Spans = ()
    parity: tuple[frozenset[str], ...] = ()
    tokens: int = 0
    trained_tokens: int = 0
    tokens_by_part: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0
    render_sha256: str = ""
    token_counts: str = ""
    recorded: TokenComparison | None = None

    def __repr__(self) -> str:
        """Returns the findings and the main counts of the sample in one line."""
        codes = [item.code for item in self.findings]
        turns = counted(len(self.spans), "trained turn")
        return brief(self, turns, findings=codes, tokens=self.tokens, calls=self.calls)


_Messages: TypeAlias = "list[dict[str, Any]]"
Rendered: TypeAlias = "str | Exception | None"
"""A rendering, or the exception of the template; None if it was not requested."""


class Verifier:
    """Checks samples against one tokenizer."""

    def __init__(self, target: Target, options: VerifyOptions | None = None) -> None:
        self.target = target
        self.options = options or VerifyOptions()

    def check(
        self,
        sample: Sample,
        dialogue: Dialogue | None = None,
        targets: Sequence[int] | None = None,
        *,
        late_system: bool = False,
    ) -> Verdict:
        """Runs all checks on a sample.

        `dialogue` is the structured form that the sample was made from; for foreign data it is
        None and parsed from the text. `targets` are the ordinals of the trained assistant turns;
        None: those with a weight other than 0. `late_system` allows a system message after the
        first turn.
        """
        findings = list(_well_formed(sample))
        if findings:
            return Verdict(tuple(findings))
        style = self.target.style
        chosen = sample.targets if targets is None else tuple(targets)
        read, faults = _structured(sample, style)
        findings += faults
        if dialogue is not None:
            findings += _misread(read, dialogue)
        meant = dialogue or read
        findings += _order_faults(sample, style, late_system=late_system)
        warnings: list[CheckFinding] = []
        if meant is not None:
            findings += _call_faults(sample, meant, read, style)
            findings += _pairing_faults(meant)
            hard, soft = _argument_faults(sample, meant, strict="schema" in self.options.require)
            findings += hard
            warnings += soft
            findings += _losses(sample, meant, chosen, style)
            rejects = "engine" in self.options.require
            (findings if rejects else warnings).extend(_breaking(meant))
        text, served, weighted = self._rendered(sample, meant)
        if isinstance(text, Exception):
            return Verdict((*findings, _failure("render", text)), tuple(warnings))
        if len(text) > MAX_CHARS:
            message = f"{len(text)} code points, more than {MAX_CHARS} cannot be verified"
            return Verdict((*findings, CheckFinding("too_long", message)), tuple(warnings))
        rendering = render_sample(sample, style)
        findings += _disagreements(text, rendering.text, served, weighted)
        findings += self._inverse(sample, text, own=dialogue is not None)
        hard, tokens = self._tokens(rendering, text)
        findings += hard
        modes: tuple[frozenset[str], ...] = ()
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        if rendering.text == text:
            prompts = self.target.parity_prompts
            modes = in_parity(sample.messages, rendering, prompts, style, sample.thoughts)
            findings += self._parity(sample, text, digest, modes, chosen)
        prompt = self.target.generation_prompts[self.options.mode]
        every = spans(rendering, prompt, style.assistant)
        trained = tuple(every[at] for at in chosen)
        if tokens is not None and rendering.text == text:
            warnings += _borders(trained, tokens)
        return Verdict(
            tuple(findings),
            tuple(warnings),
            text,
            spans=trained,
            parity=tuple(modes[at] for at in chosen) if modes else (),
            tokens=len(tokens) if tokens is not None else 0,
            trained_tokens=tokens.inside(trained) if tokens is not None else 0,
            tokens_by_part=tokens_by_part(rendering, tokens)
            if tokens is not None and rendering.text == text
            else {},
            calls=sum(len(turn.calls) for turn in meant.turns) if meant else 0,
            render_sha256=digest,
            token_counts="estimate" if self.target.missing else "",
            recorded=self._recorded(dialogue, chosen, rendering, tokens)
            if text == rendering.text
            else None,
        )

    def _recorded(
        self,
        dialogue: Dialogue | None,
        targets: Sequence[int],
        rendering: Rendering,
        tokens: TokenSequence | None,
    ) -> TokenComparison | None:
        """Compares the trained turns with the ids in the log; None if it has none of them."""
        if dialogue is None or tokens is None:
            return None
        answers = [turn for turn in dialogue.turns if turn.role == "assistant"]
        turns = [(at, ids) for at in targets if (ids := answers[at].tokens) is not None]
        if not turns:
            return None
        header = self.target.style.assistant
        prompts = self.target.generation_prompts.values()
        tails = [prompt.removeprefix(header) for prompt in prompts]
        return compare(turns, tokens, rendering.answers, tails, self.target.decode)

    def _parity(
        self,
        sample: Sample,
        text: str,
        digest: str,
        modes: Sequence[frozenset[str]],
        targets: Sequence[int],
    ) -> Iterator[CheckFinding]:
        """Applies `require: [match]`; renders one turn of every sixteenth sample to check it."""
        turns = [at for at, (role, _) in enumerate(sample.messages) if role == "assistant"]
        mode = self.options.mode
        if "match" in self.options.require:
            for ordinal in targets:
                if mode not in modes[ordinal]:
                    message = f"a server in {mode} mode renders different bytes before this turn"
                    yield CheckFinding("parity", message, turns[ordinal])
        if not turns or not turns[0] or digest[0] != "0":
            return  # the template takes no empty list of messages
        chosen = int(digest[1:9], 16) % len(turns)
        messages = sample.rows
        for name, thinking in MODES.items():
            prompt = self.target.render(
                messages[: turns[chosen]],
                sample.tools,
                add_generation_prompt=True,
                enable_thinking=thinking,
            )
            if text.startswith(prompt) != (name in modes[chosen]):
                message = f"the template's own generation prompt ({name}) disagrees"
                yield CheckFinding("parity", message, turns[chosen])

    def _rendered(
        self, sample: Sample, meant: Dialogue | None
    ) -> tuple[str | Exception, Rendered, Rendered]:
        """Renders the sample, its dialogue (if any), and the sample with its weights (if any)."""
        self.target.open()  # if it cannot be loaded, that is no finding about the sample
        text = _attempt(self.target.render, sample.rows, sample.tools)
        served: Rendered = None
        if meant is not None:
            turns = structured(_canonical(meant, self.target.style), self.target.style)
            is_same = meant.tools is sample.tools and turns == sample.rows
            served = text if is_same else _attempt(self.target.render_again, turns, meant.tools)
        weighted: Rendered = None
        if sample.weights:
            messages: Any = sample.record["messages"]
            weighted = _attempt(self.target.render, messages, sample.tools)
        return text, served, weighted

    def _tokens(
        self, rendering: Rendering, text: str
    ) -> tuple[list[CheckFinding], TokenSequence | None]:
        if not unicodedata.is_normalized("NFC", text):
            message = "the rendering is not NFC: the tokenizer changes it"
            return [differ("nfc", message, unicodedata.normalize("NFC", text), text)], None
        tokens = self.target.encode(text)
        control = tokens.control
        findings = []
        expected = self.target.tokens_in(rendering.control)
        if rendering.text == text and tuple(control) != expected:
            offset, token = min(set(expected) ^ set(control))
            message = f"control token {token} is not a token here"
            if (offset, token) in control:
                message = (
                    f"control token {token} occurs in the text where the structure does not put it"
                )
            findings.append(
                CheckFinding("tokens", message, offset=offset, found=context(text, offset))
            )
        if not tokens.are_exact:
            decoded = tokens.decode()
            findings.append(differ("tokens", "the ids decode to different text", text, decoded))
        return findings, tokens

    def _inverse(self, sample: Sample, text: str, *, own: bool) -> Iterator[CheckFinding]:
        try:
            back = parse(text, self.target.style)
        except ParseFault as fault:
            excerpt = context(text, fault.offset)
            yield CheckFinding("inverse", fault.detail, offset=fault.offset, found=excerpt)
            return
        exact = self.target.style.tools.exact
        if exact and back.definitions != sample.definitions:
            yield CheckFinding("inverse", "the tools read back from the rendering differ")
        back = _with_system(back, sample, self.target.style)
        if len(back.messages) != len(sample.messages):
            message = f"{len(back.messages)} turns read back, {len(sample.messages)} written"
            yield CheckFinding("inverse", message)
            return
        none = ("",) * len(sample.messages)
        if (sample.thoughts or none) != (back.thoughts or none):
            code = "inverse" if own else "lossy"
            yield CheckFinding(code, "a thought beside the text is lost or rewritten")
        for index, (was, now) in enumerate(zip(sample.messages, back.messages, strict=True)):
            if was == now:
                continue
            lossy = not own and was[0] == now[0] == "assistant" and _is_loss(was[1], now[1])
            code = "lossy" if lossy else "inverse"
            message = "it differs when read back from the rendering"
            if lossy:
                message = "the template loses or rewrites what the turn begins with"
            yield replace(differ(code, message, was[1], now[1]), turn=index)


def _disagreements(
    text: str, specified: str, served: Rendered, weighted: Rendered
) -> Iterator[CheckFinding]:
    """Yields a finding for each rendering that is not the template's rendering of the sample."""
    if specified != text:
        yield differ("spec", "the specification gives different bytes", text, specified)
    if isinstance(served, Exception):
        yield _failure("structured", served)
    elif served is not None and served != text:
        yield differ("structured", "a server renders different bytes", served, text)
    if isinstance(weighted, Exception):
        yield _failure("weight", weighted)
    elif weighted is not None and weighted != text:
        yield differ("weight", "with weights it renders differently", text, weighted)


def _borders(trained: Spans, tokens: TokenSequence) -> Iterator[CheckFinding]:
    for border in tokens.across([border for span in trained for border in span]):
        yield CheckFinding("border", "a token crosses the border of a turn", offset=border)


def _with_system(back: Sample, sample: Sample, style: Style) -> Sample:
    """Adds the system turn that was not read back because the template writes one like it.

    It has the template's default text, or stands before definitions that cannot be read back.
    """
    role, text = sample.messages[0]
    default = style.default_system
    if role == "system" and default is not None and text == default:
        return replace(back, messages=(sample.messages[0], *back.messages))
    if not style.tools.exact and sample.tools:
        block = tools_block(sample.definitions, style.tools).text
        lead = style.tools_lead if role != "system" else f"{text}\n\n"
        if back.messages and back.messages[0] == ("system", lead + block):
            first = sample.messages[:1] if role == "system" else ()
            return replace(back, messages=(*first, *back.messages[1:]))
    return back


def _canonical(meant: Dialogue, style: Style) -> Dialogue:
    """Returns the dialogue as a server parses it: arguments are text only if they escape tokens."""
    if not style.dialect.plain:
        return meant
    if all(is_canonical(call) for turn in meant.turns for call in turn.calls):
        return meant
    turns = (
        replace(
            turn,
            calls=tuple(
                call if is_canonical(call) else Call.of(call.name, call.arguments)
                for call in turn.calls
            ),
        )
        for turn in meant.turns
    )
    return replace(meant, turns=tuple(turns))


def _is_loss(was: str, now: str) -> bool:
    """Returns whether contents differ only in a thought or in leading newlines."""
    thought, rest = leading_thought(was)
    thought_now, rest_now = leading_thought(now)
    same = rest.lstrip("\n") == rest_now.lstrip("\n") and thought_now in ("", thought)
    return same and "</think>" not in rest


def _attempt(
    render: Callable[[_Messages, Sequence[Json]], str], messages: _Messages, tools: Sequence[Json]
) -> str | Exception:
    try:
        return render(messages, tools)
    except Exception as error:  # any exception of a template is a finding about the sample
        return error


def _failure(code: str, error: Exception) -> CheckFinding:
    return CheckFinding(code, f"{type(error).__name__}: {error}"[:200])


@cache
def verifier_for(tokenizer: str, options: VerifyOptions | None = None) -> Verifier:
    """Returns this process's verifier, created and its tokenizer loaded on the first call.

    Raises UsageError if the tokenizer cannot be loaded.
    """
    target = target_for(tokenizer)
    target.open()
    return Verifier(target, options or VerifyOptions())
