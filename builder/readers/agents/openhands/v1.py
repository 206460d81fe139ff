"""Reads OpenHands V1 (SDK): event stores, JSONL exports of events, and logs of model calls.

A record is an event or a model call. Source: docs/formats/openhands-v1.md; the SDK's event/ for
what the model sees of an event. Calls of one `llm_response_id` are one turn. Arguments that are not
part of the executed action (`security_risk`, `summary`) are the model's own and kept. Unknown kinds
are counted.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from builder.conversation import (
    Content,
    Context,
    Conversation,
    Event,
    Ignored,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.openhands.views import (
    FAMILY,
    AgentViews,
    ViewEntry,
    calls_finish,
    is_dump,
    is_llm_log,
    llm_log,
    with_affixes,
    with_place_keys,
)
from builder.readers.homes import Home
from builder.readers.toolkit.chat_messages import (
    as_harness,
    chat_message,
    content,
    reasoning,
    tool_calls,
)
from builder.readers.toolkit.comparison import with_session_keys
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.sources.listing import Listing
from builder.sources.source import Record, Source

# Converts observations of OpenHands' SDK to the content that the model sees.

_ERROR_HEADER = "[An error occurred during execution.]\n"
"""The header before the output of a failed tool (`Observation.ERROR_MESSAGE_HEADER`)."""
_TERMINAL_LIMIT, _LIMIT = 30_000, 50_000
"""Maximum number of characters that are sent of a terminal output, and of each text of a result."""
_CLIPPED = (
    "<response clipped><NOTE>Due to the max output limit, only part of the full response has been"
    " shown to you.{}</NOTE>"
)
_KEPT = (
    " The complete output has been saved to {} - you can use other tools to view the full content"
    " (truncated part starts around line {})."
)
_IMAGE_TYPES = {"/9j/": "jpg", "R0lGODlh": "gif", "UklGR": "webp"}
"""File name extensions of screenshots that are not PNG, by the beginning of their base64."""


def _as_sent(observation: dict[str, Json]) -> tuple[Content, ...]:
    """Returns the content of a tool result, without the text that the agent appends to it."""
    output = with_affixes(content(observation.get("content")), observation.get("metadata"))
    header = (Text(_ERROR_HEADER),) if observation.get("is_error") is True else ()
    folder = as_str(observation.get("full_output_save_dir"))
    match observation.get("kind"):
        case "BrowserObservation":
            return (*header, *_of_browser(output, observation, folder))
        case "TaskObservation":
            names = {"Task ID": "task_id", "Subagent": "subagent", "Status": "status"}
            about = "\n".join(f"{name}: {as_str(observation.get(names[name]))}" for name in names)
            return (Text(about), *header, *output)
    first = output[0] if output else None
    if "metadata" in observation and len(output) == 1 and isinstance(first, Text):
        text = _clipped(first.text, _TERMINAL_LIMIT, folder and f"{folder}/terminal")
        output = (replace(first, text=text),)
    return (*header, *output)


def clipped(output: Iterable[Content]) -> tuple[Content, ...]:
    """Returns the content of a tool message, with the middle of each long text removed."""
    return tuple(
        replace(part, text=_clipped(part.text, _LIMIT)) if isinstance(part, Text) else part
        for part in output
    )


def _of_browser(
    output: tuple[Content, ...], observation: dict[str, Json], folder: str
) -> tuple[Content, ...]:
    """Returns the page's text as one part, then the screenshot after the name of its file.

    The log does not say whether the model takes images.
    """
    text = "".join(part.text for part in output if isinstance(part, Text))
    content: list[Content] = []
    if text:
        content.append(Text(_clipped(text, _LIMIT, folder and f"{folder}/browser")))
    if data := as_str(observation.get("screenshot_data")):
        if folder:
            kinds = (kind for start, kind in _IMAGE_TYPES.items() if data.startswith(start))
            file = f"browser_screenshot_{_digest(data)}.{next(kinds, 'png')}"
            content.append(Text(f"Screenshot saved to: {folder}/{file}"))
        content.append(Media("image"))
    return tuple(content)


def _clipped(text: str, limit: int, kept_as: str = "") -> str:
    """Returns a text of at most `limit` characters; in a longer one, a notice replaces the middle.

    `kept_as`: the beginning of the path to which the SDK saves the whole text, or "".
    """
    if len(text) <= limit:
        return text
    head = (limit - len(_CLIPPED.format("")) + 1) // 2
    kept = ""
    if kept_as:
        line = len(text[:head].splitlines()) + 1
        kept = _KEPT.format(f"{kept_as}_output_{_digest(text)}.txt", line)
    notice = _CLIPPED.format(kept)
    room = limit - len(notice)
    if room <= 0:
        return notice[:limit]
    head = min(head, room)
    return text[:head] + notice + text[len(text) - (room - head) :]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


_SEEN = frozenset(
    {
        "SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent",
        "UserRejectObservation", "Condensation", "ACPToolCallEvent",
    }
)  # fmt: skip
_SILENT = frozenset(
    {
        "ConversationStateUpdateEvent", "ConversationErrorEvent", "PauseEvent", "TokenEvent",
        "LLMCompletionLogEvent", "StreamingDelta", "StreamingDeltaEvent", "CondensationRequest",
        "CondensationSummaryEvent", "HookExecutionEvent",
    }
)  # fmt: skip
_STATE_FILE, _EVENTS = "base_state.json", "events"
_EVENT_FILE = re.compile(r"(?:^|/)event-(\d{1,18})[^/]*\.json$")
_THOUGHT = re.compile(r"\s*<think>(.*?)</think>\n*", re.DOTALL)


def is_store(folder: Listing) -> bool:
    """Returns whether the folder is a conversation: its state and a folder of events."""
    return folder.is_file(_STATE_FILE) and folder.is_dir(_EVENTS)


def recognise(source: Source) -> str | None:
    """Claims events of the SDK's kinds, its LLM logs, and its dump of messages."""
    if source.peek.kind == "folder":
        events = (member for member in source.members if _EVENT_FILE.search(member.name))
        first = next(events, None)
        return recognise(first) if first else None
    for item in source.peek.objects[:20]:
        if "source" in item and as_str(item.get("kind")) in _SEEN | _SILENT:
            return "events with source and a kind of the SDK"
        if is_llm_log(item) and "latency_sec" in item:
            return "the log of a model call: messages, response, kwargs, latency_sec"
    return "a dump of messages to the agent" if is_dump(source) else None


def read(source: Source) -> Iterator[Event]:
    """Yields one conversation (more if its history was rewritten), or one for each model call."""
    if is_dump(source):
        yield from _dump(source)
        return
    session = AgentViews("session", source.name, atomic=True)
    silent: Counter[str] = Counter()
    used = 0
    for record in objects(_records(source, session), "an event is "):
        if isinstance(record, Problem | Ignored):
            if isinstance(record, Problem):
                session.lose(1)
            yield record
            continue
        where, value = record
        if is_llm_log(value):
            yield llm_log(where, value)
        elif code := _take(session, value, where):
            silent[code] += 1
        else:
            session.places.append(where)
            used += 1
    yield from ignored(silent)
    if used:
        answers = [entry for entry in session.view if entry.role == "assistant" and entry.parts]
        complete = bool(answers) and calls_finish(answers[-1].parts)
        yield from session.events(used, complete=complete)


def _records(source: Source, session: AgentViews) -> Iterator[Record | Problem | Ignored]:
    """Yields the records of a file, or the events of a store by the numbers in file names."""
    if not source.members:
        yield from source.records()
        return
    numbered: list[tuple[int, Source]] = []
    for member in source.members:
        if match := _EVENT_FILE.search(member.name):
            numbered.append((int(match[1]), member))
            continue
        if member.name == _STATE_FILE:
            state = member.document()
            agent = as_dict(state, "agent") if not isinstance(state, Problem) else {}
            model = as_dict(agent.get("llm"))
            session.model = name_or_none(model.get("model"))
            session.writes_calls = model.get("native_tool_calling") is False
        source.count_records()
        yield Ignored("state" if member.name == _STATE_FILE else "other_file")
    expected = 0
    for number, member in sorted(numbered, key=lambda item: (item[0], item[1].name)):
        if number > expected:  # events are numbered from 0
            session.lose(number - expected)
        expected = number + 1
        for record in member.records():
            where = f"{member.name} {record.where}" if record.where != "file" else member.name
            yield replace(record, where=where)


def _take(session: AgentViews, event: dict[str, Json], where: str) -> str:
    """Reads the next event; returns the code under which it is ignored, "" if it is used."""
    event_id = as_str(event.get("id")) or where
    match event.get("kind"):
        case "SystemPromptEvent":
            prompts = (event.get("system_prompt"), event.get("dynamic_context"))
            output = content([prompt for prompt in prompts if prompt])
            session.add(ViewEntry(event_id, "system", output))
            tools = as_list(event.get("tools"))
            # Later versions log only the tools' classes, without schemas.
            if tools and all("function" in as_dict(tool) for tool in tools):
                session.tools = tuple(tools)
        case "MessageEvent":
            session.add(_message(session, event, event_id))
        case "ActionEvent":
            session.add(_action(session, event, event_id))
        case "ObservationEvent":
            observation = as_dict(event.get("observation"))
            output = (*_as_sent(observation), *as_harness(content(event.get("extended_content"))))
            failed = observation.get("is_error") is True
            session.add(_result(event, event_id, output, failed=failed))
        case "AgentErrorEvent":
            output = content(event.get("error"))
            session.add(_result(event, event_id, output, failed=True))
        case "UserRejectObservation":
            reason = as_str(event.get("rejection_reason"))
            output = (Text(f"Action rejected: {reason}"),)
            session.add(_result(event, event_id, output, denied=True))
        case "Condensation":
            forgotten = set(map(as_str, as_list(event.get("forgotten_event_ids"))))
            offset = event.get("summary_offset")
            place = offset if isinstance(offset, int) else 0
            session.condense(forgotten, as_str(event.get("summary")), place, event_id)
        case "ACPToolCallEvent":
            detail = "calls of an external agent, without what its model wrote"
            session.problems.append(Problem("no_model_response", where, detail, records=0))
        case "ConversationErrorEvent":
            code, detail = as_str(event.get("code")), as_str(event.get("detail"))
            session.outcome["error"] = ": ".join(filter(None, (code, detail)))
            return "no_message"
        case "ConversationStateUpdateEvent":
            if event.get("key") == "execution_status" and isinstance(event.get("value"), str):
                session.outcome["exit_status"] = event["value"]
            return "no_message"
        case str(kind) if kind in _SILENT:
            return "no_message"
        case kind:
            if carries_content(event):
                session.add(ViewEntry(event_id, "user", unknown_message(kind).parts))
            return unknown_code(kind)
    return ""


def _message(session: AgentViews, event: dict[str, Json], event_id: str) -> ViewEntry:
    """Returns a message of the user or the agent; text appended to the user's is harness text."""
    message = as_dict(event.get("llm_message"))
    output = content(message.get("content"))
    if event.get("source") == "agent":
        calls = tool_calls(message.get("tool_calls"))
        parts = (*_answer_parts(message, output, session.changes), *calls)
        return ViewEntry(event_id, "assistant", parts)
    added = as_harness(content(event.get("extended_content")))
    output = as_harness(output) if event.get("source") == "environment" else output
    return ViewEntry(event_id, "user", (*output, *added))


def _action(session: AgentViews, event: dict[str, Json], event_id: str) -> ViewEntry:
    """Returns one call of a response; the first one includes the text before the calls."""
    output = content(event.get("thought"))
    call = as_dict(event.get("tool_call"))
    function = as_dict(call.get("function")) or call
    call_id = name_or_none(event.get("tool_call_id")) or name_or_none(call.get("id"))
    name = as_str(function.get("name")) or as_str(event.get("tool_name"))
    turn = name_or_none(event.get("llm_response_id"))
    key = f"{turn}/{call_id}" if turn and call_id else event_id
    made = ToolCall(name, function.get("arguments"), id=call_id, key=key)
    parts = (*_answer_parts(event, output, session.changes), made)
    return ViewEntry(event_id, "assistant", parts, turn)


def _answer_parts(
    event: dict[str, Json], output: tuple[Part, ...], changes: Counter[str]
) -> tuple[Part, ...]:
    """Returns thoughts and text; some models' thoughts are repeated in the text as `<think>`."""
    # An event's `thought` is the text of the answer.
    thoughts = reasoning({key: item for key, item in event.items() if key != "thought"})
    first = output[0] if output else None
    match = _THOUGHT.match(first.text) if isinstance(first, Text) else None
    if not isinstance(first, Text) or match is None:
        return (*thoughts, *output)
    known = {part.text.strip() for part in thoughts if isinstance(part, Reasoning)}
    if match[1].strip() not in known | {""}:
        thoughts = [*thoughts, Reasoning(match[1].strip("\n"))]
    elif match[1].strip():
        changes["thought_repeated"] += 1
    rest = first.text[match.end() :]
    return (*thoughts, *([Text(rest)] if rest.strip() else []), *output[1:])


def _result(
    event: dict[str, Json],
    event_id: str,
    output: tuple[Content, ...],
    *,
    failed: bool = False,
    denied: bool = False,
) -> ViewEntry:
    result = ToolResult(
        clipped(output),
        call_id=name_or_none(event.get("tool_call_id")),
        name=name_or_none(event.get("tool_name")),
        is_error=failed,
        is_denied=denied,
    )
    return ViewEntry(event_id, "tool", (result,))


def _dump(source: Source) -> Iterator[Event]:
    """Yields the conversation of a bare list of messages."""
    messages: list[Message] = []
    last = ""
    for record in objects(source.records(), "a message is "):
        if isinstance(record, Problem):
            yield record
        else:
            last, message = record
            messages.append(chat_message(message))
    if messages:
        answers = [message for message in messages if message.role == "assistant"]
        yield Conversation(
            id="session",
            record=f"[0]-{last}",
            messages=tuple(with_session_keys(FAMILY, with_place_keys(messages), "log")),
            records=len(messages),
            complete=bool(answers) and calls_finish(answers[-1].parts),
            context=Context("partial", ("tools",)),
        )


READER = Reader(
    name="openhands-v1",
    summary="OpenHands V1 (SDK): stores and exports of events by kind, logs of model calls",
    evidence=("source", "files"),
    recognise=recognise,
    is_agent=True,
    homes=(
        Home("OpenHands", "~/.openhands/conversations"),
        Home("OpenHands", "~/.openhands/sessions"),
    ),
    read=read,
    is_store=is_store,
)
