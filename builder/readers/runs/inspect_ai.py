"""Reads Inspect AI's evaluation logs: `.eval` archives and `.json` files.

Conversations are built from the model events. Source: docs/formats/inspect-ai.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import (
    REPEAT,
    Content,
    Context,
    Conversation,
    Data,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.jsonio import JsonFault, NotANumber, dumps, loads_leniently
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import content_block, unreadable_messages
from builder.readers.toolkit.comparison import calls, digests, with_session_keys
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import logged_outcome, not_object
from builder.readers.toolkit.thoughts import with_thoughts
from builder.readers.toolkit.unknown_keys import message_keys, noted
from builder.sources.source import Record, Source
from builder.sources.zip_file import first_name, member, members, sizes

# -- messages ------------------------------------------------------------------------------------

_ATTACHMENT = re.compile(r"(?:attachment|tc)://(.*)", re.DOTALL)
"""A reference to a text; `tc` was the scheme in 2024."""
_SILENT = frozenset({"data"})
"""Content with internal data of a provider (ContentData)."""
_CUT_SHORT = frozenset({"max_tokens", "model_length", "content_filter"})


class Texts:
    """Resolves the attachments of a sample; `lost` describes those that are not in the log."""

    def __init__(self, attachments: dict[str, Json]) -> None:
        self._attachments = attachments
        self.lost: list[str] = []

    def text(self, value: Json) -> str:
        """Returns the text, or the attachment to which it refers; "" for other values."""
        text = as_str(value)
        reference = _ATTACHMENT.fullmatch(text)
        if reference is None:
            return text
        attached = self._attachments.get(reference[1])
        if isinstance(attached, str):
            return attached
        self.lost.append("missing attachment")
        return text

    def value(self, value: Json) -> Json:
        """Returns the value with its references replaced by the attachments."""
        if isinstance(value, str) and not isinstance(value, NotANumber):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {name: self.value(item) for name, item in value.items()}
        return value


def read_message(item: Json, texts: Texts, stop_reason: str = "") -> list[Message]:
    """Returns the messages of a logged message; a tool run by the provider splits the turn.

    An assistant message that the model did not generate (an example of the dataset, an operator's
    text) is marked `inserted`.
    """
    return noted(_messages(as_dict(item), texts, stop_reason), item, message_keys(NAME))


def _messages(message: dict[str, Json], texts: Texts, stop_reason: str) -> list[Message]:
    role = as_str(message.get("role"))
    turn = name_or_none(message.get("id")) if role == "assistant" else None
    inserted = role == "assistant" and message.get("source") in ("input", "operator")
    untrained = "inserted" if inserted else None
    parts = _content(message.get("content"), texts)
    if role == "tool":
        return [Message(role, (_result(message, parts, texts),))]
    if role == "assistant":
        parts = with_thoughts(parts, message)
    for call in as_dicts(message.get("tool_calls")):
        parts += _call(call, texts)
    if stop_reason in _CUT_SHORT:
        parts.append(Unparsed("", "truncated"))
    split: list[Message] = []
    pending: list[Part] = []
    for number, part in enumerate(parts):
        if isinstance(part, ToolCall) and turn:
            pending.append(replace(part, key=f"{turn}/{number}"))
        else:
            pending.append(part)
        if isinstance(part, ToolResult):
            turn_id = _numbered(turn, len(split))
            split.append(Message(role, tuple(pending[:-1]), turn_id, untrained))
            split.append(Message("tool", (part,)))
            pending = []
    if pending or not split:
        split.append(Message(role, tuple(pending), _numbered(turn, len(split)), untrained))
    return split


def _numbered(turn: str | None, position: int) -> str | None:
    return f"{turn} +{position}" if turn and position else turn


def _content(value: Json, texts: Texts) -> list[Part]:
    parts: list[Part] = []
    for item in [value] if isinstance(value, str) else as_list(value):
        part = as_dict(item)
        kind = as_str(part.get("type"))
        if kind == "text" or isinstance(item, str):
            text = texts.text(part.get("text") if part else item)
            parts += [Text(text)] if text else []
        elif kind == "reasoning":
            is_hidden = part.get("redacted") is True  # it is encrypted; its summary, if any, is not
            thought = texts.text(part.get("summary" if is_hidden else "reasoning"))
            parts += [Reasoning(thought, is_hidden)] if thought else []
        elif kind == "tool_use":
            parts += _server_call(part, texts)
        elif kind not in _SILENT:
            parts.append(content_block(item))
    return parts


def _call(call: dict[str, Json], texts: Texts) -> list[Part]:
    """Returns a call. With a `parse_error`, its arguments differ from the model's text."""
    name = name_or_none(call.get("function"))
    if name is None:
        return [Unparsed(dumps(call), "bad_call")]
    call_id = name_or_none(call.get("id"))
    made = ToolCall(name, texts.value(call.get("arguments")), id=call_id)
    error = texts.text(call.get("parse_error"))
    return [made, Unparsed(error, "parse_error")] if error else [made]


def _server_call(part: dict[str, Json], texts: Texts) -> list[Part]:
    call_id = name_or_none(part.get("id"))
    call = ToolCall(as_str(part.get("name")), texts.value(part.get("arguments")), id=call_id)
    error = texts.text(part.get("error"))
    result = error or texts.value(part.get("result"))
    parts = (Text(result) if isinstance(result, str) else Data(result),)
    return [call, ToolResult(parts, call_id=call_id, is_error=bool(error))]


def _result(message: dict[str, Json], parts: list[Part], texts: Texts) -> ToolResult:
    """Returns a tool's result; of a failed call the model saw the error's message."""
    error = as_dict(message.get("error"))
    visible = texts.text(error.get("message"))
    pieces = tuple(part for part in parts if isinstance(part, Content))
    return ToolResult(
        (Text(visible),) if visible else pieces,
        call_id=name_or_none(message.get("tool_call_id")),
        name=name_or_none(message.get("function")),
        is_error=bool(error),
    )


def _marks(messages: list[Message]) -> list[bytes]:
    """Returns the digest of each prefix of the messages, without marks that a request lacks."""
    kept = (
        replace(one, parts=tuple(part for part in one.parts if not isinstance(part, Unparsed)))
        for one in messages
    )
    return [b"", *digests(kept)]


# -- model events --------------------------------------------------------------------------------

_MAX_REFERENCES = 100_000
"""Maximum number of messages to which one model event may refer."""


@dataclass(slots=True)
class _Chain:
    """A conversation so far: its messages, and the tools of its requests.

    answers  digests of the answers in its own model events
    """

    messages: list[Message]
    model: str | None
    tools: dict[str, Json] = field(default_factory=dict)
    graded: bool = False
    changes: Counter[str] = field(default_factory=Counter)
    answers: dict[bytes, str | None] = field(default_factory=dict)


class Chains:
    """Reads the model events of a sample into `chains`: `take` each, then `finish`."""

    def __init__(self, texts: Texts, sample: dict[str, Json]) -> None:
        self.texts = texts
        self.chains: list[_Chain] = []
        self.events = 0
        # The messages to which events refer by position; `message_pool` is the older key.
        data = as_dict(sample.get("events_data"))
        self._pool = as_list(data.get("messages")) or as_list(sample.get("message_pool"))
        self._pooled: dict[int, list[Message]] = {}
        self._ends: dict[bytes, _Chain] = {}
        self._seen: set[bytes] = set()

    def take(self, event: dict[str, Json], *, graded: bool) -> None:
        """Adds a model event to the chain that its request repeats, or begins a chain.

        Additional tools join the chain; any other change of the tools begins a new one.
        """
        output = as_dict(event.get("output"))
        choices = as_list(output.get("choices"))
        if not choices:
            return  # an error, after which the request is repeated
        self.events += 1
        choice = as_dict(choices[0])
        messages = self._request(event)
        before = len(messages)
        messages += read_message(
            choice.get("message"), self.texts, as_str(choice.get("stop_reason"))
        )
        model = name_or_none(output.get("model")) or name_or_none(event.get("model"))
        marks = _marks(messages)
        end = marks[-1]
        if end in self._seen:
            return
        asked = reversed(marks[: before + 1])
        chain = next((self._ends[mark] for mark in asked if mark in self._ends), None)
        offered = as_list(self.texts.value(event.get("tools")))
        tools = {as_str(tool, "name"): tool for tool in offered}
        grows = chain is not None and chain.tools.items() <= tools.items()
        if chain is None or chain.graded != graded or not grows:
            chain = _Chain([], None, graded=graded)
            self.chains.append(chain)
        else:
            self._ends = {mark: one for mark, one in self._ends.items() if one is not chain}
            if len(tools) > len(chain.tools):
                chain.changes["tools_added_later"] += len(tools) - len(chain.tools)
        chain.messages = messages
        chain.model = model
        chain.tools = tools
        for message in messages[before:]:
            chain.answers[_digest(message)] = model
        self._ends[end] = chain
        self._seen.update(marks)

    def _request(self, event: dict[str, Json]) -> list[Message]:
        items = as_list(event.get("input"))
        messages = [message for item in items for message in read_message(item, self.texts)]
        for reference in as_list(event.get("input_refs")):
            ends = [end for end in as_list(reference) if isinstance(end, int)]
            start, stop = ends if len(ends) == 2 else (0, 0)
            for at in range(max(start, 0), min(stop, len(self._pool))):
                if len(messages) >= _MAX_REFERENCES:
                    self.texts.lost.append("too many references")
                    return messages
                if at not in self._pooled:
                    self._pooled[at] = read_message(self._pool[at], self.texts)
                messages += self._pooled[at]
        return messages

    def finish(self, final: list[Message]) -> None:
        """Adds the sample's own messages: the end of a chain, or the only messages."""
        marks = _marks(final)
        chain = next((self._ends[mark] for mark in reversed(marks) if mark in self._ends), None)
        if chain is not None:
            chain.messages = [*chain.messages, *final[marks.index(_marks(chain.messages)[-1]) :]]
        elif not self.chains and final:
            self.chains.append(_Chain(final, None))

    def marked(self, chain: _Chain) -> Iterator[Message]:
        """Yields the messages of a chain; marks assistant turns that are not targets.

        An answer from an event of another chain is a repeat; an answer from no event was inserted
        into the request.
        """
        elsewhere = {digest for one in self.chains if one is not chain for digest in one.answers}
        for message in chain.messages:
            if message.role != "assistant" or not self.events or message.untrained is not None:
                yield message
                continue
            digest = _digest(message)
            if digest in chain.answers:
                yield replace(message, model=chain.answers[digest])
            else:
                yield replace(message, untrained=REPEAT if digest in elsewhere else "inserted")


def _digest(message: Message) -> bytes:
    return _marks([message])[-1]


# -- files ---------------------------------------------------------------------------------------

NAME = "inspect-ai"

_START, _HEADER = "_journal/start.json", "header.json"
_SUBMIT = "submit"
"""The tool with which Inspect's agents end their run."""


def recognise(source: Source) -> str | None:
    """Claims archives that begin with Inspect's members, and objects with version, eval, status."""
    if source.peek.kind == "zip":
        name = first_name(source)
        known = name in (_START, _HEADER) or (name.startswith("samples/") and "_epoch_" in name)
        return f"an archive that begins with {name}" if known else None
    for item in source.peek.objects[:1]:
        if {"version", "eval", "status"} <= item.keys() and isinstance(item["eval"], dict):
            return "an object with version, status and eval"
    return None


@dataclass(frozen=True, slots=True)
class _Log:
    """Properties that all samples of a log share."""

    scope: str
    model: str | None = None
    task: str = ""


def item_sizes(source: Source) -> Sequence[int]:
    """Returns the sizes of an archive's members, which can be read separately."""
    return sizes(source) if source.peek.kind == "zip" else ()


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of each sample."""
    names: Counter[str] = Counter()
    if source.peek.kind == "zip":
        yield from _archive(source, names)
        return
    value = source.document()
    if isinstance(value, Problem):
        source.count_records()
        yield value
        return
    log = _log(as_dict(value, "eval"), source.name)
    samples = as_list(value, "samples")
    if not samples:
        source.count_records()
        yield Ignored("no_samples")
    for record in source.counted(samples, "samples[{}]"):
        yield from _sample(record, log, names)


def _archive(source: Source, names: Counter[str]) -> Iterator[Event]:
    # The header is the last member, and missing if the run was interrupted.
    start = member(source, _START)
    opening = _decode(source, start, _START) if isinstance(start, bytes) else None
    fields = {} if isinstance(opening, Problem) else as_dict(opening)
    log = _log(as_dict(fields.get("eval")), source.name)
    for name, data in members(source):
        value = data if isinstance(data, Problem) else _decode(source, data, name)
        if isinstance(value, Problem):
            yield value
        elif name.startswith("samples/"):
            yield from _sample(source.seen(name, value), log, names)
        else:
            yield Ignored("no_sample")


def _log(evaluation: dict[str, Json], scope: str) -> _Log:
    run = as_str(evaluation.get("run_id"))
    return _Log(
        f"{run} {evaluation.get('task_id')}" if run else scope,
        model=name_or_none(evaluation.get("model")),
        task=as_str(evaluation.get("task")),
    )


def _decode(source: Source, data: bytes, where: str) -> Json | Problem:
    """Returns the JSON value of a member; Inspect writes NaN and Infinity as scores."""
    try:
        value, exact = loads_leniently(data)
    except JsonFault as fault:
        return fault.at(where)
    source.is_exact = source.is_exact and exact
    return value


# -- one sample ----------------------------------------------------------------------------------


def _sample(record: Record, log: _Log, names: Counter[str]) -> Iterator[Event]:
    sample = record.value
    if not isinstance(sample, dict):
        yield not_object(record, "a sample is ")
        return
    transcript = as_dict(sample.get("transcript"))  # 2024: contains events and texts
    texts = Texts({**as_dict(transcript.get("content")), **as_dict(sample.get("attachments"))})
    logged = as_list(sample.get("events")) or as_list(transcript.get("events"))
    events = [as_dict(event) for event in logged]
    chains = Chains(texts, sample)
    for event, graded in _with_scope(events):
        if event.get("event") == "model":
            chains.take(event, graded=graded)
    chains.finish(
        [m for item in as_list(sample.get("messages")) for m in read_message(item, texts)]
    )
    outcome = _outcome(sample, log.task, texts)
    place = f"{sample.get('id')} epoch {sample.get('epoch')}"[:200]
    used = [chain for chain in chains.chains if chain.messages]
    if not used:
        yield Problem("no_messages", record.where, "the sample contains no messages")
    for number, chain in enumerate(used):
        problems = unreadable_messages(texts.lost, record.where)
        if chain.graded:
            detail = "a grader's request on the sample"
            problems = (Problem("grader", record.where, detail, records=0), *problems)
        scope = f"{log.scope} {place}"
        if not any(message.turn for message in chain.messages):
            scope += f" {number}"  # without ids, call keys are unique only in one conversation
        yield Conversation(
            id=unique_name(place if number == 0 else f"{place} part {number + 1}", names),
            record=record.where,
            messages=tuple(with_session_keys(NAME, chains.marked(chain), scope)),
            tools=tuple(chain.tools.values()) if chains.events else None,
            model=chain.model or log.model,
            records=1 if number == 0 else 0,
            problems=problems,
            changes=chain.changes,
            complete=_submits(chain.messages),
            context=Context("rendered") if chains.events else None,
            outcome=outcome,
        )


def _outcome(sample: dict[str, Json], task: str, texts: Texts) -> Mapping[str, Json] | None:
    """Returns the outcome as logged; None if there is none.

    score, feedback  objects with each scorer's value and explanation, by its name
    error            message of the error
    exit_status      type of the limit that ended the sample
    benchmark        the task
    """
    scores = as_dict(sample.get("scores"))
    if not scores and "score" in sample:  # before version 2: a single score without a name
        scores = {"score": sample["score"]}
    feedback = {name: texts.text(as_dict(one).get("explanation")) for name, one in scores.items()}
    values = {name: as_dict(one).get("value") for name, one in scores.items()}
    return logged_outcome(
        benchmark=task,
        error=texts.text(as_dict(sample.get("error")).get("message")),
        exit_status=as_str(sample, "limit", "type"),
        feedback={name: text for name, text in feedback.items() if text},
        score={name: value for name, value in values.items() if value is not None},
    )


def _with_scope(events: list[dict[str, Json]]) -> Iterator[tuple[dict[str, Json], bool]]:
    inside: dict[str, bool] = {}
    steps: list[bool] = []
    for event in events:
        grading = event.get("type") in ("scorer", "scorers")
        match event.get("event"):
            case "span_begin":
                above = inside.get(as_str(event.get("parent_id")), False)
                inside[as_str(event.get("id"))] = grading or above
            case "step" if event.get("action") == "begin":
                steps.append(grading or bool(steps and steps[-1]))
            case "step" if steps:
                steps.pop()
        span = inside.get(as_str(event.get("span_id")), False)
        yield event, span or bool(steps and steps[-1])


def _submits(messages: list[Message]) -> bool:
    answers = [message for message in messages if message.role == "assistant"]
    return bool(answers) and any(call.name == _SUBMIT for call in calls(answers[-1]))


READER = declared(NAME, recognise=recognise, read=read, item_sizes=item_sizes)
