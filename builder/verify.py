"""The proof of a sample: the checks of verification.md, all of them, on every sample.

The authority is the target tokenizer's own `apply_chat_template`. All faults of a sample are
collected; a check that makes no sense after an earlier fault is left out.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from builder.conversation import Json
from builder.parity import Spans, in_parity, spans
from builder.qwen3.flatten import structured
from builder.qwen3.parse import (
    UNFIT_NAME,
    ParseFault,
    breaks_json,
    is_canonical,
    leading_thought,
    parse,
    read_call,
    split_answer,
    split_responses,
)
from builder.qwen3.render import Rendering, find_calls, render_sample
from builder.qwen3.tokenizer import Target
from builder.qwen3.tokens import Tokens
from builder.sample import Call, Dialogue, Sample, Turn
from builder.schemas import BrokenSchemaFault, violations
from builder.verify_options import VerifyOptions

CONTEXT = 40
"""Code points shown on either side of a difference."""
MAX_CHARS = 16 << 20
"""A longer rendering is refused (`too_long`): no context holds it, and tokenising it takes memory
in proportion (about 75 bytes a code point)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: code of the check, what it is, and where (message index, offset in code points).

    `expected` and `found` are the two contexts of a difference.
    """

    code: str
    message: str
    turn: int | None = None
    offset: int | None = None
    expected: str | None = None
    found: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a sample after all checks; `findings` is empty if it is proven.

    `warnings` are schema violations under `verify.schema: report`, and borders of the spans that no
    token border falls on. `text` is the template's rendering ("" if it gave none), `render_sha256`
    is of its UTF-8, in hex. `spans` and `parity` are those of the turns that the sample teaches:
    [start, end) in code points, and the modes in which each is in parity with inference
    (`builder.parity`).
    """

    findings: tuple[Finding, ...]
    warnings: tuple[Finding, ...] = ()
    text: str = ""
    spans: Spans = ()
    parity: tuple[frozenset[str], ...] = ()
    tokens: int = 0
    calls: int = 0
    render_sha256: str = ""


class Verifier:
    """Checks samples against one tokenizer."""

    def __init__(self, target: Target, options: VerifyOptions | None = None) -> None:
        self.target = target
        self.options = options or VerifyOptions()

    def check(
        self,
        sample: Sample,
        dialogue: Dialogue | None = None,
        unit: str = "conversation",
        trained: int | None = None,
    ) -> Verdict:
        """Run all checks.

        `dialogue` is the structured form that our normaliser meant; without it (foreign data) it
        is what the sample's text says. `unit` "turn": the last turn may call without an answer.
        `trained`: the sample teaches its last so many assistant turns; None: all of them.
        """
        findings = list(_well_formed(sample))
        if findings:
            return Verdict(tuple(findings))
        read, faults = _meaning(sample)
        findings += faults
        if dialogue is not None:
            findings += _misread(read, dialogue)
        meant = dialogue or read
        findings += _order(sample)
        warnings: list[Finding] = []
        if meant is not None:
            findings += _calls(sample, meant, read)
            findings += _pairing(meant, unit)
            hard, soft = _tools(sample, meant, self.options.schema)
            findings += hard
            warnings += soft
        text, served = self._rendered(sample, meant)
        if isinstance(text, Exception):
            message = f"{type(text).__name__}: {text}"[:200]
            return Verdict((*findings, Finding("render", message)), tuple(warnings))
        if len(text) > MAX_CHARS:
            message = f"{len(text)} code points, more than {MAX_CHARS} are not verified"
            return Verdict((*findings, Finding("too_long", message)), tuple(warnings))
        rendering = render_sample(sample, self.target.style)
        if rendering.text != text:
            findings.append(
                differ("spec", "the specification says otherwise", text, rendering.text)
            )
        if isinstance(served, Exception):
            findings.append(Finding("structured", f"{type(served).__name__}: {served}"[:200]))
        elif served is not None and served != text:
            findings.append(differ("structured", "a server renders other bytes", served, text))
        findings += self._inverse(sample, text, own=dialogue is not None)
        hard, tokens = self._tokens(rendering, text)
        findings += hard
        first = 0 if trained is None else max(len(rendering.answers) - trained, 0)
        modes: tuple[frozenset[str], ...] = ()
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        if rendering.text == text:
            prompts = self.target.generation_prompts
            modes = in_parity(sample.messages, rendering, prompts, self.target.style)
            findings += self._parity(sample, text, digest, modes, first)
        taught = spans(rendering, self.target.generation_prompts[self.options.mode])[first:]
        if tokens is not None and rendering.text == text:
            warnings += _borders(taught, tokens)
        return Verdict(
            tuple(findings),
            tuple(warnings),
            text,
            taught,
            modes[first:],
            len(tokens) if tokens is not None else 0,
            sum(len(turn.calls) for turn in meant.turns) if meant else 0,
            digest,
        )

    def _parity(
        self,
        sample: Sample,
        text: str,
        digest: str,
        modes: Sequence[frozenset[str]],
        first: int,
    ) -> Iterator[Finding]:
        """The gate, and on every sixteenth sample the template's own word on one of its turns."""
        turns = [at for at, (role, _) in enumerate(sample.messages) if role == "assistant"]
        mode = self.options.mode
        if self.options.parity == "require":
            for at, found in zip(turns[first:], modes[first:], strict=True):
                if mode not in found:
                    message = f"a server in {mode} mode shows other bytes before this turn"
                    yield Finding("parity", message, at)
        if not turns or not turns[0] or digest[0] != "0":
            return  # the template takes no empty list of messages
        chosen = int(digest[1:9], 16) % len(turns)
        messages: Any = sample.record["messages"]
        for name, thinking in (("thinking", True), ("non-thinking", False)):
            shown = self.target.render(
                messages[: turns[chosen]],
                sample.tools,
                add_generation_prompt=True,
                enable_thinking=thinking,
            )
            if text.startswith(shown) != (name in modes[chosen]):
                message = f"the template's own generation prompt ({name}) says otherwise"
                yield Finding("parity", message, turns[chosen])

    def _rendered(
        self, sample: Sample, meant: Dialogue | None
    ) -> tuple[str | Exception, str | Exception | None]:
        """The template's renderings of the sample and, where it means a dialogue, of that.

        With the same definitions both go through `apply_chat_template` at once, which looks at
        those once then.
        """
        flat = [{"role": role, "content": content} for role, content in sample.messages]
        if meant is None:
            return self._attempt(flat, sample.tools), None
        served = structured(_canonical(meant))
        if meant.tools is sample.tools:
            if served == flat:  # no calls, no thoughts: one rendering says all
                text = self._attempt(flat, sample.tools)
                return text, text
            try:
                rendered = self.target.render_all([flat, served], sample.tools)
            except Exception:  # noqa: S110 - one of them: which is asked for apart
                pass
            else:
                return rendered[0], rendered[1]
        return self._attempt(flat, sample.tools), self._attempt(served, meant.tools)

    def _attempt(self, messages: list[dict[str, Any]], tools: Sequence[Json]) -> str | Exception:
        try:
            return self.target.render(messages, tools)
        except Exception as error:  # whatever a template raises is a verdict on the sample
            return error

    def _tokens(self, rendering: Rendering, text: str) -> tuple[list[Finding], Tokens | None]:
        if not unicodedata.is_normalized("NFC", text):
            message = "the rendering is not NFC: the tokenizer changes it"
            return [differ("nfc", message, unicodedata.normalize("NFC", text), text)], None
        tokens = self.target.encode(text)
        control = tokens.control
        findings = []
        if rendering.text == text and tuple(control) != rendering.control:
            expected, found = set(rendering.control), set(control)
            offset, token = min(expected ^ found)
            what = "stands in the text" if (offset, token) in found else "is missing"
            message = f"control token {token} {what} where the structure does not put it"
            if what == "is missing":
                message = f"control token {token} is no token here"
            findings.append(Finding("tokens", message, offset=offset, found=_context(text, offset)))
        if not tokens.are_exact:
            decoded = tokens.decode()
            findings.append(differ("tokens", "the ids decode to other text", text, decoded))
        return findings, tokens

    def _inverse(self, sample: Sample, text: str, *, own: bool) -> Iterator[Finding]:
        try:
            back = parse(text, self.target.style)
        except ParseFault as fault:
            shown = _context(text, fault.offset)
            yield Finding("inverse", fault.detail, offset=fault.offset, found=shown)
            return
        if back.definitions != sample.definitions:
            yield Finding("inverse", "the tools read back from the rendering differ")
        default = self.target.style.default_system
        if default is not None and sample.messages[0] == ("system", default):
            back = replace(back, messages=(sample.messages[0], *back.messages))  # as if it had none
        if len(back.messages) != len(sample.messages):
            message = f"{len(back.messages)} turns read back, {len(sample.messages)} written"
            yield Finding("inverse", message)
            return
        for index, (was, now) in enumerate(zip(sample.messages, back.messages, strict=True)):
            if was == now:
                continue
            lossy = not own and was[0] == now[0] == "assistant" and _is_loss(was[1], now[1])
            code = "lossy" if lossy else "inverse"
            message = "read back from the rendering it differs"
            if lossy:
                message = "the template loses or rewrites what the turn begins with"
            yield replace(differ(code, message, was[1], now[1]), turn=index)


def _borders(taught: Spans, tokens: Tokens) -> Iterator[Finding]:
    """Where a token lies across a border of a taught turn: no mask of tokens is exact there."""
    for border in tokens.across([border for span in taught for border in span]):
        yield Finding("border", "a token lies across the border of a turn", offset=border)


def _well_formed(sample: Sample) -> Iterator[Finding]:
    """What must hold before anything can be rendered."""
    if not sample.messages:
        yield Finding("order", "no messages")
    for index, (role, content) in enumerate(sample.messages):
        if role not in ("system", "user", "assistant"):
            yield Finding("order", f"unknown role {role[:40]!r}: the template skips it", index)
        if not _encodable(content):
            yield Finding("format", "a lone surrogate cannot be written as UTF-8", index)
    for index, tool in enumerate(sample.tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        named = isinstance(name, str) and name
        if not isinstance(tool, dict) or tool.get("type") != "function" or not named:
            message = f'tools[{index}] is not {{"type": "function", "function": {{"name": …}}}}'
            yield Finding("tools", message)
        elif not _encodable(sample.definitions[index]):
            yield Finding("format", f"tools[{index}]: a lone surrogate cannot be written as UTF-8")


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _meaning(sample: Sample) -> tuple[Dialogue | None, list[Finding]]:
    """The structured form of a foreign sample, and where its text means none."""
    turns: list[Turn] = []
    findings: list[Finding] = []
    for index, (role, content) in enumerate(sample.messages):
        if role == "assistant":
            try:
                answer = split_answer(content)
            except ParseFault as fault:
                shown = _context(content, fault.offset)
                findings.append(Finding(fault.code, fault.detail, index, fault.offset, found=shown))
                continue
            turns.append(Turn(role, answer.text, answer.thought, answer.calls))
            continue
        responses = split_responses(content) if role == "user" else None
        if responses is not None:
            turns.append(Turn("tool", responses=responses))
        else:
            if role == "user" and "<tool_response>" in content:
                message = "<tool_response> markup in a turn that is not made of its blocks alone"
                findings.append(Finding("pairing", message, index, found=_context(content, 0)))
            turns.append(Turn(role, content))
    return (None if findings else Dialogue(tuple(turns), sample.tools)), findings


def _misread(read: Dialogue | None, intended: Dialogue) -> Iterator[Finding]:
    """Our own sample must mean, to a reader of its text alone, the dialogue that it was made of.

    A logged text that looks like calls or tool responses would pass every comparison of
    renderings, and is none of the structure's.
    """
    if read is None or read.turns == intended.turns:
        return
    pairs = zip(read.turns, intended.turns, strict=False)
    index = next((at for at, (one, two) in enumerate(pairs) if one != two), None)
    yield Finding("inverse", "the flat form reads back as another dialogue", index)


def _order(sample: Sample) -> Iterator[Finding]:
    before = ""
    for index, (role, content) in enumerate(sample.messages):
        is_answer = role == "user" and split_responses(content) is not None
        if role == "system" and index:
            yield Finding("order", "a system message that is not the first", index)
        if role == "assistant" and before in ("", "system"):
            yield Finding("order", "an assistant turn before any user turn", index)
        if before == role == "assistant":
            yield Finding("order", "two assistant turns in a row", index)
        if role == "user" and (before == "user" or (before == "responses" and is_answer)):
            yield Finding("order", "two user turns in a row", index)
        if not content.strip():
            yield Finding("order", "an empty turn", index)
        before = "responses" if is_answer else role
    if before != "assistant":
        yield Finding("order", "does not end with an assistant turn", len(sample.messages) - 1)


def _calls(sample: Sample, meant: Dialogue, read: Dialogue | None) -> Iterator[Finding]:
    """The specification's pattern finds the intended calls, all of them and nothing else.

    `read`: what the text says. It was read by that pattern, which looks into thoughts as well.
    """
    if meant is read and not any("<tool_call>" in turn.reasoning for turn in read.turns):
        return
    turns = [turn.calls for turn in meant.turns if turn.role == "assistant"]
    texts = [
        (index, text) for index, (role, text) in enumerate(sample.messages) if role == "assistant"
    ]
    if len(turns) != len(texts):
        yield Finding("calls", f"{len(texts)} assistant turns, {len(turns)} intended")
        return
    for (index, content), intended in zip(texts, turns, strict=True):
        found: list[Call] = []
        try:
            found += [read_call(text, content) for text in find_calls(content)]
        except ParseFault as fault:
            yield Finding(fault.code, fault.detail, index, fault.offset)
            continue
        want = [(call.name, call.plain) for call in intended]
        have = [(call.name, call.plain) for call in found]
        if want != have:
            yield Finding(
                "calls",
                "the calls found are not those intended",
                index,
                expected=str(want)[:200],
                found=str(have)[:200],
            )


def _pairing(meant: Dialogue, unit: str) -> Iterator[Finding]:
    open_calls = 0
    for index, turn in enumerate(meant.turns):
        if turn.role == "tool":
            if len(turn.responses) != open_calls:
                message = f"{len(turn.responses)} tool responses answer {open_calls} calls"
                yield Finding("pairing", message, index)
            open_calls = 0
            continue
        if open_calls:
            yield Finding("pairing", f"{open_calls} calls without a response", index - 1)
        open_calls = len(turn.calls)
    if open_calls and unit != "turn":
        message = f"{open_calls} calls of the last turn without a response"
        hint = "if each sample ends with the turn to be learnt, verify with --unit turn"
        yield Finding("pairing", f"{message} ({hint})", len(meant.turns) - 1)


def _tools(sample: Sample, meant: Dialogue, schema: str) -> tuple[list[Finding], list[Finding]]:
    """(findings, warnings): called names and their arguments."""
    hard: list[Finding] = []
    soft: list[Finding] = []
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
                hard.append(Finding("tools", f"{call.name[:80]!r}: {UNFIT_NAME}", index))
            elif call.name not in known:
                hard.append(Finding("tools", f"{call.name[:80]!r} is called, not defined", index))
            elif (definition := known[call.name]) is not None:
                try:
                    found = violations(definition, call.arguments)
                except BrokenSchemaFault as fault:
                    soft.append(Finding("bad_schema", f"{call.name[:80]}: {fault}", index))
                    continue
                breaks += [Finding("schema", f"{call.name[:80]}: {text}", index) for text in found]
    return hard, soft


def _canonical(meant: Dialogue) -> Dialogue:
    """The dialogue as a server would hold it: JSON text only where tokens were neutralised."""
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
    """Do the contents differ in nothing but a thought or newlines at the beginning?"""
    thought, rest = leading_thought(was)
    kept, left = leading_thought(now)
    same = rest.lstrip("\n") == left.lstrip("\n") and kept in ("", thought)
    return same and "</think>" not in rest


def differ(code: str, message: str, expected: str, found: str) -> Finding:
    """The finding of a difference: its first offset and both contexts."""
    offset = next(
        (at for at, (one, two) in enumerate(zip(expected, found, strict=False)) if one != two),
        min(len(expected), len(found)),
    )
    return Finding(
        code,
        message,
        offset=offset,
        expected=_context(expected, offset),
        found=_context(found, offset),
    )


def _context(text: str, offset: int) -> str:
    return text[max(0, offset - CONTEXT) : offset + CONTEXT]
