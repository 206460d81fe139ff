"""Reads rows in forms other than that of `build`: recognised by file, converted one by one.

Only independent rows are converted: forms that the chat template or a trainer reads (structured
calls, prompt and completion, rendered text), and rows of a format whose reader treats lines
independently. Everything else is a log, for which a UsageError refers to `build`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from builder.conversation import Conversation, Json
from builder.finding import CheckFinding
from builder.jsonio import JsonFault, dumps, loads, loads_leniently, loads_text
from builder.normalize.normalise import Normalised, normalise
from builder.normalize.options import NormalizeOptions
from builder.problem import Problem, UsageError
from builder.qwen3.calls import ParseFault
from builder.qwen3.flat import flatten, parse, split_tools
from builder.qwen3.render import render_sample
from builder.qwen3.templates import SPECIFIED, Style
from builder.readers import read_events, readers, recognise, unrecognised
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str
from builder.sample import Dialogue, Sample
from builder.sources.sniff import PEEK_LINES
from builder.sources.source import Record, Source
from builder.text import token_pattern

# -- extracts the sample from a decoded row, and the turns that it trains --------------------------

_TEMPLATE_ROLES = ("system", "user", "assistant")
"""Roles of the flat form, in which results are text of a user message."""


def read_sample(value: Json, *, encoded_tools: bool = True) -> Sample | list[CheckFinding]:
    """Returns the sample in a decoded row, or every reason why there is none.

    `tools` may be missing, null, or a list. With `encoded_tools` the list, or any of its elements,
    may also be JSON text, as Arrow files store JSON; in a JSONL file, `apply_chat_template` would
    refuse the loader's result. An assistant message may have a `weight` of 0 or 1; null, which
    Arrow writes for a message without one, counts as missing, as for `reasoning_content`, the
    thought beside the text. Other columns are ignored.
    """
    if not isinstance(value, dict):
        return [CheckFinding("format", "the line is not a JSON object")]
    findings: list[CheckFinding] = []
    raw = value.get("messages")
    messages: list[tuple[str, str]] = []
    weights: list[int | None] = []
    thoughts: list[str] = []
    if not isinstance(raw, list):
        findings.append(CheckFinding("format", "messages: is not a list"))
        raw = []
    for index, item in enumerate(map(as_dict, raw)):
        role, content, weight = item.get("role"), item.get("content"), item.get("weight")
        thought, is_answer = item.get("reasoning_content"), role == "assistant"
        if not isinstance(role, str):
            fault = ".role: is not a string"
        elif not isinstance(content, str):
            fault = ".content: is not a string (the template renders lists as nothing)"
        elif extra := item.keys() - {"role", "content", "weight", "reasoning_content"}:
            fault = f": unknown keys {', '.join(sorted(extra))}: not the flat form"
        elif thought is not None and not (is_answer and isinstance(thought, str)):
            fault = ".reasoning_content: is not text of an assistant message"
        elif weight is not None and not (is_answer and type(weight) is int and weight in (0, 1)):
            fault = ".weight: is not 0 or 1 of an assistant message"
        else:
            messages.append((role, content))
            weights.append(weight if isinstance(weight, int) else None)
            thoughts.append(str(thought or ""))
            continue
        findings.append(CheckFinding("format", f"messages[{index}]{fault}", index))
    tools = value.get("tools")
    if not encoded_tools and _is_encoded(tools):
        message = (
            "tools: JSON text, which the loader leaves as text and the chat template refuses:"
            " decode it, or declare the feature as JSON"
        )
        findings.append(CheckFinding("format", message))
    if isinstance(tools, str):
        try:
            tools = loads(tools)
        except JsonFault as fault:
            findings.append(CheckFinding("format", f"tools: text that is not JSON: {fault.detail}"))
            tools = None
    if tools is not None and not isinstance(tools, list):
        findings.append(CheckFinding("format", "tools: is not a list"))
    if findings:
        return findings
    listed = tools if isinstance(tools, list) else []
    given = tuple(weights) if any(weight is not None for weight in weights) else ()
    beside = tuple(thoughts) if any(thoughts) else ()
    return Sample(tuple(messages), tuple(map(loads_text, listed)), given, beside)


def unrenderable(sample: Sample) -> Iterator[CheckFinding]:
    """Yields the faults for which the chat template cannot render a sample, or skips a part."""
    if not sample.messages:
        yield CheckFinding("order", "no messages")
    for index, (role, content) in enumerate(sample.messages):
        if role not in _TEMPLATE_ROLES:
            yield CheckFinding("order", f"unknown role {role[:40]!r}: the template skips it", index)
        if not (_is_encodable(content) and _is_encodable(role)):
            yield CheckFinding("format", "a lone surrogate cannot be written as UTF-8", index)
    if not all(map(_is_encodable, sample.thoughts)):
        yield CheckFinding("format", "a lone surrogate cannot be written as UTF-8")
    for index, tool in enumerate(sample.tools):
        if as_dict(tool).get("type") != "function" or not as_str(tool, "function", "name"):
            message = f'tools[{index}] is not {{"type": "function", "function": {{"name": …}}}}'
            yield CheckFinding("tools", message)
        elif not _is_encodable(sample.definitions[index]):
            message = f"tools[{index}]: a lone surrogate cannot be written as UTF-8"
            yield CheckFinding("format", message)


def _is_encodable(text: str) -> bool:
    """Returns whether a text can be written as UTF-8: it has no lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _is_encoded(tools: Json) -> bool:
    return isinstance(tools, str) or (
        isinstance(tools, list) and any(isinstance(tool, str) for tool in tools)
    )


def targets(sample: Sample, unit: str, trained: int | None = None) -> tuple[int, ...]:
    """Returns the ordinals of the assistant turns that a row trains.

    Weights decide if there are any. Otherwise the last `trained` turns count; None: the last one
    for the unit "turn", else all.
    """
    if sample.weights:
        return sample.targets
    if trained is None and unit == "turn":
        trained = 1
    turns = sum(role == "assistant" for role, _ in sample.messages)
    first = 0 if trained is None else max(turns - trained, 0)
    return tuple(range(first, turns))


# -- finds the reader that converts the rows of a dataset that `build` did not make ----------------

_BUILDS = "`builder build {} -o OUT` makes a dataset of it"


def reader_for(source: Source, name: str, dataset: str) -> str | None:
    """Returns the reader that converts rows of the file; None if each row is recognised by itself.

    Examines the beginning of the file. If the file is a log or its rows have no known form, raises
    a UsageError that names the command that reads it. `name` is the file's name, `dataset` what the
    user specified.
    """
    if is_csv(source) and not recognise(source):
        read = islice(source.csv_rows(), PEEK_LINES)
        source = _as_lines(source.name, [row.value for row in read if isinstance(row, Record)])
    peek = source.peek
    rows = peek.objects
    unfit = {_unfit_form(row) for row in rows}
    if len(unfit) == 1 and (fault := unfit.pop()):
        raise UsageError(f"dataset {name!r}: contains {fault}")
    claims = recognise(source)
    alone = [reader for reader in claims if _reads_rows_alone(reader, source)]
    if any("messages" in row or {"prompt", "completion"} <= row.keys() for row in rows):
        return alone[0] if len(claims) == len(alone) == 1 else None
    if any(isinstance(row.get("text"), str) for row in rows):
        return None
    builds = _BUILDS.format(shlex.quote(dataset))
    if len(claims) == 1:
        ((reader, why),) = claims.items()
        if alone:
            return reader
        raise UsageError(f"dataset {name!r}: is in the format {reader} ({why}); {builds}")
    if len(claims) > len(alone):
        named = builds.replace("OUT`", "OUT --format NAME`")
        raise UsageError(f"dataset {name!r}: claimed by {', '.join(claims)}; {named}")
    if claims or any(map(_reader_of_row, rows)):
        return None
    columns = ", ".join(list(dict.fromkeys(key for row in rows for key in row))[:8])
    if columns:
        raise UsageError(
            f"dataset {name!r}: no known form of rows ({columns}): see docs/formats.md and"
            " docs/readers.md"
        )
    if peek.problem is None and peek.kind != "empty" and not _has_json(source):
        raise UsageError(f"dataset {name!r}: {unrecognised(source, dataset)}")
    return None


def reader_of_rows(rows: Iterable[Json], dataset: str) -> str | None:
    """Returns the reader of a dataset that is not a file, by its first rows (`reader_for`)."""
    return reader_for(_as_lines(dataset, rows), dataset, dataset)


def _reader_of_row(row: dict[str, Json]) -> str | None:
    """Returns the one reader that recognises a row by itself, or None."""
    source = _as_lines("row", [row])
    claims = recognise(source)
    (reader,) = claims if len(claims) == 1 else (None,)
    return reader if reader is not None and _reads_rows_alone(reader, source) else None


def _unfit_form(row: dict[str, Json]) -> str:
    """Describes a row that is made from a sample, but is none itself, and what to do; "" else."""
    if "input_ids" in row:
        return (
            "token ids (`builder export --to tokenized`), which no template renders: use the"
            " dataset that they were made from"
        )
    if {"prompt", "logged_reward"} <= row.keys() or {"prompt", "reward_model"} <= row.keys():
        return "prompts without answers: use the dataset that they were made from"
    if {"prompt", "chosen", "rejected"} <= row.keys():
        return (
            "preference pairs: `builder build` makes a dataset of pairs of messages; for pairs that"
            " `builder export --to preference` wrote, use the dataset that they were made from"
        )
    return ""


def is_csv(source: Source) -> bool:
    """Returns whether a file is a table of comma-separated values, and not damaged JSON."""
    is_named = source.name.endswith(".csv") and source.peek.kind == "text"
    return (is_named or source.is_csv) and not source.head.lstrip().startswith((b"{", b"["))


def _as_lines(name: str, rows: Iterable[Json]) -> Source:
    return Source(name, data=2 * b"".join(map(_row_line, rows)))


def _row_line(value: Json) -> bytes:
    """Returns a row as a line of JSONL; nothing for a value that JSON cannot hold."""
    try:
        return dumps(value).encode("utf-8", "surrogatepass") + b"\n"
    except ValueError:  # NaN or Infinity
        return b""


def _reads_rows_alone(reader: str, source: Source) -> bool:
    splits = readers()[reader].splits
    if splits is None:
        return False
    return splits(source) or splits(_as_lines(source.name, source.peek.records))


def _has_json(source: Source) -> bool:
    """Returns whether a line at the beginning is JSON, or begins like it and is damaged."""
    for line in source.head.splitlines()[:20]:
        if line.lstrip().startswith((b"{", b"[")):
            return True
        try:
            loads_leniently(line)
        except JsonFault:
            continue
        return True
    return False


CHAT = "openai-chat"
"""The reader of structured messages."""

_AS_LOGGED = NormalizeOptions(
    reasoning="keep", untrained_turns="weight", missing_tools="reject", allow_eval=True
)
"""Conversion infers no definitions and leaves out no more than the template requires."""


@dataclass(frozen=True, slots=True)
class RowReading:
    """The contents of a row.

    sample    the sample, or every reason why there is none
    form      the form that it was converted from; "" for the form of `build`
    reader    the reader that converted it, if one did
    code      the code of the problem for which there is no sample; "" if there is one
    dialogue  the structured form that the sample was made from, if a reader gave one
    text      the row's own rendering, if it contains rendered text
    messages  the row's own messages if a template could render them, with its `tools`
    exact     whether `messages` must render to the same text, which shows that the control tokens
              that the conversion escaped were harmless
    changes   {code: count} of changes by the conversion
    failed_calls  {place of a call: failure}, if the row says which calls failed
    warnings  the calls that a server's parser would lose: the conversion does not train their turns
    """

    sample: Sample | tuple[CheckFinding, ...]
    form: str = ""
    reader: str | None = None
    code: str = ""
    dialogue: Dialogue | None = None
    text: str | None = None
    messages: tuple[dict[str, Json], ...] = ()
    tools: Json = None
    exact: bool = False
    changes: Mapping[str, int] = field(default_factory=dict)
    failed_calls: Mapping[str, str] | None = None
    warnings: tuple[CheckFinding, ...] = ()


def read_any(
    value: Json, *, encoded_tools: bool, reader: str | None, style: Style = SPECIFIED
) -> RowReading:
    """Reads a row of a dataset that `build` did not make.

    For `encoded_tools` see `read_sample`; `reader` is the one that recognised the row's file.
    """
    sample, row = read_sample(value), as_dict(value)
    faults = sample if isinstance(sample, list) else list(unrenderable(sample))
    if isinstance(sample, Sample) and not faults and (style.beside or not sample.thoughts):
        if not encoded_tools and _is_encoded(row.get("tools")):
            return _flat_reading(sample, "messages-str", row)
        inside = _tools_in_system(sample, style)
        return RowReading(sample) if inside is None else RowReading(inside, "tools-in-system")
    if isinstance(sample, Sample) and any(fault.code != "order" for fault in faults):
        return no_sample(*faults)
    if "prompt" in row and "completion" in row:
        return _completion(row, style)
    text = row.get("text")
    if isinstance(text, str) and text.startswith(style.markers.begin):
        return _rendered(text if text.endswith("\n") else f"{text}\n", "", "text", style)
    if unfit := _unfit_form(row):
        return no_sample(CheckFinding("format", f"contains {unfit}"))
    readings: list[RowReading] = []
    for name in dict.fromkeys((reader, _reader_of_row(row) if row else None)):
        if name is not None and (name != CHAT or _is_structured(row)):
            readings.append(_converted(row, name, name, style))
            if isinstance(readings[-1].sample, Sample):
                return readings[-1]
    if readings:
        return readings[-1]
    if not faults:
        return _converted(row, CHAT, CHAT, style)
    if "messages" in row or not row:
        return no_sample(*faults)
    columns = ", ".join(key[:40] for key in list(row)[:8])
    message = f"no known form of rows ({columns}): has no messages"
    if isinstance(text, str):
        begin = style.markers.begin
        message = f"text: is not a rendering of the chat template: does not begin with {begin}"
    return no_sample(CheckFinding("format", message))


def no_sample(
    *findings: CheckFinding, form: str = "", reader: str | None = None, code: str = ""
) -> RowReading:
    """Returns the reading of a row without a sample; `code` defaults to that of a finding."""
    return RowReading(findings, form, reader, code or findings[0].code)


def _flat_reading(sample: Sample, form: str, row: dict[str, Json]) -> RowReading:
    messages = tuple(as_dicts(row.get("messages")))
    return RowReading(sample, form, messages=messages, tools=row.get("tools"))


def _tools_in_system(sample: Sample, style: Style) -> Sample | None:
    """Returns the sample with the tools taken from its system turn; None if there are none."""
    if sample.tools or not sample.messages or sample.messages[0][0] != "system":
        return None
    system, tools = split_tools(sample.messages[0][1], style)
    if not tools:
        return None
    first = () if system is None else (("system", system),)
    weights = sample.weights and sample.weights[1 - len(first) :]
    thoughts = sample.thoughts and sample.thoughts[1 - len(first) :]
    moved = Sample.written((*first, *sample.messages[1:]), tools, weights, thoughts)
    try:
        same = render_sample(moved, style).text == render_sample(sample, style).text
    except ValueError:  # lone surrogates: the verifier reports them
        return None
    return moved if same else None


def _completion(row: dict[str, Json], style: Style) -> RowReading:
    """Reads prompt and completion: messages, or the rendered text of both."""
    prompt, completion = row["prompt"], row["completion"]
    if isinstance(prompt, str) and isinstance(completion, str):
        if not prompt.startswith(style.markers.begin):
            message = (
                "prompt-completion-text: plain text, not a rendering of the chat template:"
                " `builder build` converts it"
            )
            return no_sample(CheckFinding("format", message), form="prompt-completion-text")
        ended = completion if completion.endswith("\n") else f"{completion}\n"
        return _rendered(prompt + ended, prompt, "prompt-completion-text", style)
    if not isinstance(prompt, list) or not isinstance(completion, list):
        message = "prompt and completion: are neither two texts nor two lists of messages"
        return no_sample(CheckFinding("format", message))
    messages: list[Json] = [*prompt, *completion]
    if any(as_dict(item).get("role") == "assistant" for item in prompt):
        messages = [
            {**item, "weight": int(at >= len(prompt))} if item.get("role") == "assistant" else item
            for at, item in enumerate(map(as_dict, messages))
        ]
    whole: dict[str, Json] = {"messages": messages, "tools": row.get("tools")}
    sample = read_sample(whole)
    if isinstance(sample, Sample) and (style.beside or not sample.thoughts):
        return _flat_reading(sample, "prompt-completion", whole)
    return _converted(whole, CHAT, "prompt-completion", style)


def _rendered(text: str, prompt: str, form: str, style: Style) -> RowReading:
    """Parses rendered text; answers that are complete within `prompt` are not targets."""
    try:
        sample = parse(text, style)
    except ParseFault as fault:
        message = f"{form}: is not a rendering of the chat template: {fault.detail}"
        return no_sample(CheckFinding("format", message, offset=fault.offset), form=form)
    pattern = f"{re.escape(style.assistant)}.*?{re.escape(style.markers.end)}"
    context = len(re.findall(pattern, prompt, re.DOTALL))
    if context:
        answers = 0
        weights: list[int | None] = []
        for role, _ in sample.messages:
            answers += role == "assistant"
            weights.append(int(answers > context) if role == "assistant" else None)
        tools = tuple(zip(sample.tools, sample.definitions, strict=True))
        sample = Sample.written(sample.messages, tools, tuple(weights), sample.thoughts)
    return RowReading(sample, form, text=text)


def _is_structured(row: dict[str, Json]) -> bool:
    """Returns whether messages are JSON text, or have more than role and text, and no list.

    The template renders a list as nothing: that is a fault of the row, not another form.
    """
    if isinstance(row.get("messages"), str):
        return True
    messages = as_dicts(row.get("messages"))
    if any(isinstance(message.get("content"), list) for message in messages):
        return False
    return any(
        message.get("role") not in ("system", "user", "assistant")
        or message.get("content") is None
        or message.keys() - {"role", "content", "weight"}
        for message in messages
    )


def _without_escapes(normalised: Normalised) -> dict[str, int]:
    """Returns the changes without control tokens in calls, which the row has escaped already."""
    pattern = token_pattern(_AS_LOGGED.added_tokens)
    turns = normalised.dialogue.turns if normalised.dialogue is not None else ()
    calls = [call for turn in turns for call in turn.calls]
    escaped = sum(len(pattern.findall(dumps(call.arguments))) for call in calls)
    left = normalised.changes.get("control_tokens", 0) - escaped
    kept = {code: n for code, n in normalised.changes.items() if code != "control_tokens"}
    return {**kept, "control_tokens": left} if left > 0 else kept


def _converted(row: dict[str, Json], reader: str, form: str, style: Style) -> RowReading:
    """Converts a row with a reader, like `build` with the options that leave out least."""
    source = Source("row", data=_row_line(row))
    events = list(read_events(readers()[reader], source))
    conversations = [event for event in events if isinstance(event, Conversation)]
    problems = [event for event in events if isinstance(event, Problem)]
    fit = [item for item in conversations if not item.problems]
    if len(fit) > 1:
        message = f"{form}: the row contains {len(fit)} conversations: `builder build` reads it"
        return no_sample(CheckFinding("format", message), form=form, reader=reader)
    if not fit:
        problems += [problem for item in conversations for problem in item.problems]
        problems.append(Problem("no_messages", "row", "contains no conversation"))
        return _unconverted(problems[0], form, reader)
    options = replace(_AS_LOGGED, style=style)
    normalised = normalise(fit[0], options)
    escaped = normalised.problem is not None and normalised.problem.code == "control_tokens"
    exact = escaped and reader == CHAT
    if escaped:  # the tokens may be harmless: escaped in arguments that are JSON text
        neutralised = normalise(fit[0], replace(options, control_tokens="neutralise"))
        flat = flatten(neutralised.dialogue, style).messages if neutralised.dialogue else ()
        values = [turn.get("value") for turn in as_dicts(row.get("conversations"))]
        has_answers = flat and all(text in values for role, text in flat if role == "assistant")
        if exact or has_answers:
            normalised = replace(neutralised, changes=_without_escapes(neutralised))
    lost = tuple(
        CheckFinding(loss.code, f"{loss.reason}; the turn is not trained")
        for loss in normalised.lost
    )
    if normalised.dialogue is None:
        assert normalised.problem is not None, "a rejected conversation has a reason"
        return _unconverted(normalised.problem, form, reader, lost)
    messages = tuple(as_dicts(row.get("messages")))
    return RowReading(
        flatten(normalised.dialogue, style),
        form,
        reader,
        dialogue=normalised.dialogue,
        messages=messages if reader == CHAT or isinstance(read_sample(row), Sample) else (),
        tools=row.get("tools"),
        exact=exact,
        changes={} if exact else normalised.changes,
        failed_calls=normalised.failed_calls,
        warnings=lost,
    )


def _unconverted(
    problem: Problem, form: str, reader: str, lost: tuple[CheckFinding, ...] = ()
) -> RowReading:
    finding = CheckFinding("format", f"{form}: {problem.code}: {problem.detail}")
    return no_sample(finding, *lost, form=form, reader=reader, code=problem.code)
