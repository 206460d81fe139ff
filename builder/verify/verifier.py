"""Proves samples: runs all checks (docs/output.md) on every sample.

The reference is the target tokenizer's `apply_chat_template`. All findings of a sample are
collected; checks that make no sense after an earlier finding are skipped.
"""

from __future__ import annotations

import contextlib
import hashlib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias

from builder.brief import brief
from builder.conversation import Json
from builder.finding import CheckFinding, context, differ
from builder.qwen3.dialect import ParseFault
from builder.qwen3.flatten import structured
from builder.qwen3.json_calls import is_canonical
from builder.qwen3.parity import MODES, Spans, in_parity, spans
from builder.qwen3.parse import leading_thought, parse
from builder.qwen3.parts import tokens_by_part
from builder.qwen3.render import Rendering, render_sample, tools_block
from builder.qwen3.style import Style
from builder.qwen3.tokenizer import Target, target_for
from builder.qwen3.tokens import TokenSequence
from builder.sample import Call, Dialogue, Sample
from builder.text import counted
from builder.verify import checks
from builder.verify.options import VerifyOptions
from builder.verify.recorded import TokenComparison, compare

MAX_CHARS = 16 << 20
"""Code points up to which a rendering is verified (`too_long`). No context window is larger, and
tokenising takes memory: about 65 bytes per code point, up to 200 in a single word.
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of all checks of a sample; `findings` is empty if it is proven.

    `warnings` are schema violations under `verify.schema: report`, and span boundaries inside a
    token. `text` is the template's rendering ("" if it failed), `render_sha256` that of its UTF-8.
    `spans` and `parity` describe the target turns: [start, end) in code points, and the modes in
    which each is in parity with inference (`builder.qwen3.parity`). `trained_tokens` are those of
    the spans, `tokens_by_part` those of each part (`builder.qwen3.parts`), `token_counts` is
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


Messages: TypeAlias = "list[dict[str, Any]]"
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
        findings = list(checks.well_formed(sample))
        if findings:
            return Verdict(tuple(findings))
        style = self.target.style
        chosen = sample.targets if targets is None else tuple(targets)
        read, faults = checks.meaning(sample, style)
        findings += faults
        if dialogue is not None:
            findings += checks.misread(read, dialogue)
        meant = dialogue or read
        findings += checks.order(sample, style, late_system=late_system)
        warnings: list[CheckFinding] = []
        if meant is not None:
            findings += checks.calls(sample, meant, read, style)
            findings += checks.pairing(meant)
            hard, soft = checks.tools(sample, meant, self.options.schema)
            findings += hard
            warnings += soft
            findings += checks.losses(sample, meant, chosen, style)
            rejects = self.options.engine_breaks_call == "reject"
            (findings if rejects else warnings).extend(checks.breaking(meant))
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
        """Applies `verify.parity`, and checks one turn of every sixteenth sample by rendering."""
        turns = [at for at, (role, _) in enumerate(sample.messages) if role == "assistant"]
        mode = self.options.mode
        if self.options.parity == "require":
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
        _ = self.target.tokenizer  # if it cannot be loaded, that is no finding about the sample
        flat: Messages = sample.rows
        style = self.target.style
        served = structured(_canonical(meant, style), style) if meant is not None else None
        weighted: Any = sample.record["messages"] if sample.weights else None
        if meant is None or meant.tools is sample.tools:
            text, served_text, weighted_text = self._attempt_all(
                (flat, served, weighted), sample.tools
            )
        else:
            text, weighted_text = self._attempt_all((flat, weighted), sample.tools)
            (served_text,) = self._attempt_all((served,), meant.tools)
        assert text is not None, "it was requested"
        return text, served_text, weighted_text

    def _attempt_all(
        self, forms: Sequence[Messages | None], tools: Sequence[Json]
    ) -> list[Rendered]:
        """Renders conversations with the same definitions, equal ones once; None stays None."""
        distinct: list[Messages] = []
        for form in forms:
            if form is not None and form not in distinct:
                distinct.append(form)
        texts = self._attempt_distinct(distinct, tools)
        return [None if form is None else texts[distinct.index(form)] for form in forms]

    def _attempt_distinct(
        self, forms: Sequence[Messages], tools: Sequence[Json]
    ) -> Sequence[str | Exception]:
        if len(forms) > 1:
            with contextlib.suppress(Exception):  # rendering each alone shows which one fails
                return self.target.render_all(forms, tools)
        return [self._attempt(form, tools) for form in forms]

    def _attempt(self, messages: Messages, tools: Sequence[Json]) -> str | Exception:
        try:
            return self.target.render(messages, tools)
        except Exception as error:  # any exception of a template is a finding about the sample
            return error

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
    """Yields a finding for each boundary of a trained turn that is inside a token."""
    for border in tokens.across([border for span in trained for border in span]):
        yield CheckFinding("border", "a token crosses the border of a turn", offset=border)


def _with_system(back: Sample, sample: Sample, style: Style) -> Sample:
    """Returns what was read back with the system turn that looks like one of the template's own.

    That is the template's default text, and a turn with definitions that cannot be read back.
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
    """Returns the dialogue as a server has it: arguments are text only if they escape tokens."""
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


def _failure(code: str, error: Exception) -> CheckFinding:
    return CheckFinding(code, f"{type(error).__name__}: {error}"[:200])


@cache
def verifier_for(tokenizer: str, options: VerifyOptions | None = None) -> Verifier:
    """Returns this process's verifier, created and its tokenizer loaded on the first call.

    Raises UsageError if the tokenizer cannot be loaded.
    """
    target = target_for(tokenizer)
    _ = target.tokenizer
    return Verifier(target, options or VerifyOptions())
