"""Gemini CLI."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from builder.conversation import (
    LOST_RECORD,
    REPEAT,
    Context,
    Conversation,
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
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.gemini import content_messages, mark_harness, part_list, read_parts
from builder.readers.toolkit.chat_messages import results_apart
from builder.readers.toolkit.comparison import CallKeys, common_prefix, without_key
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.places import Segments, ignored, span
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.siblings import from_related
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.sources.source import Source

# -- converts the message records of a Gemini CLI session at one time to messages ------------------

_DENIED = "User did not allow tool call"
"""The program's text in the result of a call that the user refused."""

_SUMMARY = "<state_snapshot>"

_LOST: dict[str, Json] = {"type": "lost_record"}
"""Stands among the records in the place of one that cannot be read."""

_CUT = Unparsed("", "truncated_answer")

_NONE: Mapping[str, str | None] = MappingProxyType({})

_Comparable = Sequence[tuple[str, Part]]
"""Roles and parts in order, without thoughts, harness text and incidental fields."""


@dataclass(frozen=True, slots=True)
class _View:
    """The messages, their comparable form, the model, and the context level."""

    messages: tuple[Message, ...]
    compared: _Comparable
    model: str | None
    context: Context


_NOT_RECORDED = ("system", "tools")
"""The codes of `Context.missing` for what no version records."""


def _view_of(
    records: Iterable[tuple[str, dict[str, Json]]],
    session: str,
    copied: Mapping[str, str | None] = _NONE,
) -> _View:
    """Returns the message records (id, record) of one session at one time as messages.

    `copied`: answers that the program recorded itself, as `_copies_of` returns them.
    """
    keys = CallKeys(session)
    messages: list[Message] = []
    answered: set[str] = set()
    model: str | None = None
    doubled_from = sys.maxsize  # index of the first message after which results occur twice
    sent: set[str] = set()  # ids of calls with results in messages of the user
    listed = [*records]
    has_holes = any(item is _LOST for _, item in listed)
    for at, (key, item) in enumerate(listed):
        follows = listed[at + 1][1].get("type") if at + 1 < len(listed) else None
        role, parts, results = _read_record(item, keys, is_answered=follows == "gemini")
        ids = {result.call_id for result in results if result.call_id}
        if role == "assistant":
            answered -= {part.id for part in parts if isinstance(part, ToolCall) and part.id}
            model = name_or_none(item.get("model")) or model
        else:
            # Results are written twice: with the call and as a message of the user. After a resume,
            # two messages of each request contain them, but a sample can show only one.
            if ids & sent:
                doubled_from = min(doubled_from, len(messages))
            sent |= ids
        new = tuple(result for result in results if result.call_id not in answered)
        answered |= ids
        name = name_or_none(item.get("model")) if role == "assistant" else None
        is_copy = copied.get(key, key) is None
        if role == "assistant" and name is None and key not in copied and has_holes:
            is_copy = True  # the `$set` after it may be lost
        untrained = "inserted" if is_copy else None
        if role == "assistant" and follows == _LOST["type"] and not ids:
            parts.append(_CUT)  # it grew in the lost record
        turn = copied.get(key) or key
        own = [Message(role, tuple(parts), turn, untrained, model=name)] if parts else []
        tool = [Message("tool", new)] if new else []
        messages += [*own, *tool] if role == "assistant" else [*tool, *own]
    compared = tuple(
        (message.role, _bare(part))
        for message in messages
        for part in message.parts
        if not (isinstance(part, Reasoning) or part in (LOST_RECORD, _CUT))
        and not (isinstance(part, Text) and part.harness)
    )
    opens = any(
        isinstance(part, Text) and part.harness and not part.text.startswith(_SUMMARY)
        for message in messages[:1]
        for part in message.parts
    )
    context = Context.lacking(_NOT_RECORDED if opens else ("reminders", *_NOT_RECORDED))
    doubled = Context.lacking([*context.missing, "history"])
    for at, message in enumerate(messages):
        if at >= doubled_from and message.role == "assistant":
            messages[at] = replace(message, context=doubled)
    return _View(tuple(messages), compared, model, context)


def _read_record(
    item: dict[str, Json], keys: CallKeys, *, is_answered: bool
) -> tuple[str, list[Part], Sequence[ToolResult]]:
    """Returns the role of a message record, its parts without results, and its results.

    `is_answered`: the record of an answer follows.
    """
    if item is _LOST:
        return "user", [LOST_RECORD], ()
    if item.get("type") not in ("user", "gemini"):
        return "user", [*unknown_message(item.get("type")).parts], ()
    content = item.get("content")
    parts = read_parts([] if content is None else part_list(content), keys)
    results, rest = results_apart(parts)
    if item.get("type") == "gemini":
        answer, recorded = _with_calls(item, mark_harness(rest, "assistant"), keys)
        return "assistant", answer, [*results, *recorded]
    marked = mark_harness(rest, "user")
    text = "".join(part.text for part in marked if isinstance(part, Text)).strip()
    # A command that was sent as text is a prompt, as in headless mode.
    is_local = not is_answered and text.startswith(("/", "?"))
    for at, part in enumerate(marked):
        if isinstance(part, Text) and (is_local or part.text.startswith(_SUMMARY)):
            marked[at] = replace(part, harness=True)
    return "user", marked, results


def _with_repeats(conversations: Sequence[Conversation]) -> list[Conversation]:
    """Marks answers that are in several conversations as repeats in all but one.

    They stay targets in the first conversation without problems, else in the first one.
    """
    targets: set[str] = set()
    marked = [*conversations]
    for at in sorted(range(len(marked)), key=lambda at: bool(marked[at].problems)):
        messages = [*marked[at].messages]
        for number, message in enumerate(messages):
            if message.role == "assistant":
                shown = [_bare(part) for part in message.parts if not isinstance(part, Reasoning)]
                answer = repr((message.turn, shown))
                if answer in targets and message.untrained is None:
                    messages[number] = replace(message, untrained=REPEAT)
                targets.add(answer)
        marked[at] = replace(marked[at], messages=tuple(messages))
    return marked


def _with_calls(
    item: dict[str, Json], parts: list[Part], keys: CallKeys
) -> tuple[list[Part], list[ToolResult]]:
    """Returns the model's parts with the record's thoughts and calls, and the recorded results.

    Thoughts and calls in `content` take precedence; missing ones are added.
    """
    if not any(isinstance(part, Reasoning) for part in parts):
        thoughts = [
            (as_str(one.get("subject")), as_str(one.get("description")))
            for one in as_dicts(item.get("thoughts"))
        ]
        texts = (f"**{subject}** {text}".strip() if subject else text for subject, text in thoughts)
        parts = [*(Reasoning(text) for text in texts if text), *parts]
    ids = [part.id for part in parts if isinstance(part, ToolCall)]
    bare = [(part.name, part.arguments) for part in parts if isinstance(part, ToolCall)]
    results: list[ToolResult] = []
    for value in as_list(item.get("toolCalls")):
        record = as_dict(value)
        call_id = name_or_none(record.get("id"))
        name = as_str(record.get("name"))
        if call_id in ids and call_id is not None:
            ids.remove(call_id)
        elif None in ids and (name, record.get("args")) in bare:
            ids.remove(None)
        else:
            parts.append(ToolCall(name, record.get("args"), call_id, keys.of(call_id)))
        result = _recorded_result(record, name, call_id, keys)
        if result is not None:
            results.append(result)
    return parts, results


def _recorded_result(
    record: dict[str, Json], name: str, call_id: str | None, keys: CallKeys
) -> ToolResult | None:
    given = record.get("result")
    if given is None or given == []:
        return None
    parts = read_parts(part_list(given), keys)
    result: ToolResult | None = next((part for part in parts if isinstance(part, ToolResult)), None)
    content = result.content if result else ()
    content += tuple(part for part in parts if isinstance(part, Text))
    is_denied = any(isinstance(part, Text) and _DENIED in part.text for part in content)
    return ToolResult(
        content,
        call_id=call_id,
        name=name or None,
        is_error=bool(result and result.is_error) or record.get("status") == "error",
        is_denied=is_denied,
        is_interrupted=record.get("status") == "cancelled" and not is_denied,
    )


def _copies_of(
    messages: Mapping[str, dict[str, Json]], ids: Sequence[str]
) -> dict[str, str | None]:
    """Returns the answers that the program recorded once more before it replaced the list.

    `ids` are those of the new list. They are copies if the records at the end of the list before
    are exactly these and the model did not give any of them: its answers name the model. Maps the
    id of each copy to that of the answer before, or to None if there is no such answer.
    """
    listed, known = [*messages.items()], frozenset(ids)
    start = len(listed)
    while start and (listed[start - 1][0] in known or listed[start - 1][1] is _LOST):
        start -= 1
    before, copies = listed[:start], listed[start:]
    has_holes = any(item is _LOST for _, item in copies)
    if not before or not (has_holes or [key for key, _ in copies] == [*ids]):
        return {}
    if any(item.get("type") == "gemini" and item.get("model") for _, item in copies):
        return {}
    answers = [(_shown(item), key) for key, item in before if _is_answer(item)]
    found: dict[str, str | None] = {}
    for key, item in copies:
        if item.get("type") != "gemini":
            continue
        shown = _shown(item)
        at = next((at for at, (other, _) in enumerate(answers) if other == shown), None)
        found[key] = None if at is None else answers[at][1]
        answers = answers if at is None else answers[at + 1 :]
    return found


def _is_answer(item: Json) -> bool:
    return as_dict(item).get("type") == "gemini"


def _shown(item: dict[str, Json]) -> tuple[str, frozenset[str]]:
    content = item.get("content")
    parts = [] if content is None else [as_dict(part) for part in part_list(content)]
    text = "".join(as_str(part.get("text")) for part in parts if not part.get("thought"))
    return text, frozenset(_call_ids(item))


def _call_ids(item: dict[str, Json]) -> set[str]:
    calls = as_list(item.get("toolCalls"))
    content = [] if item.get("content") is None else part_list(item.get("content"))
    calls = calls + [as_dict(part).get("functionCall") for part in content]
    return {as_str(call, "id") for call in calls if call is not None}


def _bare(part: Part) -> Part:
    """Returns the part without the fields that differ between its two written forms."""
    if isinstance(part, ToolResult):
        return replace(part, is_error=False, is_denied=False, is_interrupted=False)
    return without_key(part)


def _starts_with(whole: _Comparable, start: _Comparable) -> bool:
    return len(start) <= len(whole) and common_prefix(whole, start) == len(start)


# -- reads Gemini CLI's recorded sessions (`.json`, `.jsonl`), saved chats and restore points ------

_UI_TYPES = frozenset({"info", "error", "warning"})
_PROJECT_ROOT = ".project_root"
_WORKSPACE = re.compile(
    r"<session_context>.*?^- \*\*Workspace Directories:\*\*\n {2}- ([^\n]+)",
    re.DOTALL | re.MULTILINE,
)


def _recognise(source: Source) -> str | None:
    """Claims sessions by their metadata or messages, saved chats and restore points by shape."""
    if _is_companion(source.name):
        return "a file that gemini-cli keeps next to its sessions"
    peek = source.peek
    if peek.kind == "jsonl":
        for item in peek.objects:
            if _is_metadata(item):
                return "a session's metadata (sessionId, projectHash)"
            if isinstance(item.get("$rewindTo"), str) or "messages" in as_dict(item.get("$set")):
                return "a change to the list of messages ($set, $rewindTo)"
            if item.get("type") == "gemini" and {"id", "content", "timestamp"} <= item.keys():
                return "a message of type gemini"
    elif peek.kind == "json":
        is_list = source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        return _document_kind(list(peek.records) if is_list else peek.records[0])
    return None


def _is_companion(name: str) -> bool:
    """Returns whether a file belongs to the sessions: their project's path, or a large output."""
    folders, _, file = name.rpartition("/")
    return file == _PROJECT_ROOT or "tool-outputs" in folders.split("/")


def _is_metadata(item: dict[str, Json]) -> bool:
    return isinstance(item.get("sessionId"), str) and isinstance(item.get("projectHash"), str)


def _document_kind(document: Json) -> str | None:
    if isinstance(document, list):
        if document and all(_is_content(item) for item in document):
            return "a saved chat: a list of Content (role, parts)"
        if document and all(_is_prompt(item) for item in document):
            return "a log of prompts (sessionId, messageId, message)"
        return None
    item = as_dict(document)
    if _is_metadata(item):
        return "a session (sessionId, projectHash)"
    if item.keys() <= {"history", "authType"} and _are_contents(item.get("history")):
        return "a saved chat: history of Content (role, parts)"
    if "toolCall" in item and _are_contents(item.get("clientHistory")):
        return "a restore point (clientHistory, toolCall)"
    return None


def _is_content(value: Json) -> bool:
    item = as_dict(value)
    return item.get("role") in ("user", "model") and isinstance(item.get("parts"), list)


def _are_contents(value: Json) -> bool:
    items = as_list(value)
    return bool(items) and all(map(_is_content, items))


def _is_prompt(value: Json) -> bool:
    return {"sessionId", "messageId", "type", "message"} <= as_dict(value).keys()


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of a session: its last state and each abandoned one."""
    if _is_companion(source.name):
        source.count_records()
        yield Ignored("session_file", source.records_read)
        return
    folder = _project_folder(source)
    for event in _events(source):
        if isinstance(event, Conversation):
            yield replace(event, folder=folder or _workspace(event))
        else:
            yield event


def _workspace(conversation: Conversation) -> str | None:
    """Returns the working directory that the program's first message names."""
    parts = conversation.messages[0].parts if conversation.messages else ()
    found = (_WORKSPACE.match(part.text) for part in parts if isinstance(part, Text))
    return next((match[1] for match in found if match), None)


def _project_folder(source: Source) -> str | None:
    """Returns the working directory that a file in the project's folder names."""
    for above in ("", "../", "../../"):  # a saved chat, a session, a sub-agent's session
        if folder := from_related(source, above + _PROJECT_ROOT, _text_of):
            return folder
    return None


def _text_of(source: Source) -> str:
    return source.head.decode("utf-8", "replace").strip()


def _events(source: Source) -> Iterator[Event]:
    if source.peek.kind != "json":
        yield from _event_log(source)
        return
    document = source.document()
    item = document if isinstance(document, dict) else {}
    if isinstance(item.get("messages"), list):
        yield from _legacy(source, item)
    elif isinstance(document, list) and document and all(map(_is_prompt, document)):
        yield Ignored("prompt_log", sum(1 for _ in source.counted(document)))
    elif isinstance(document, list):
        yield from _saved(source, document)
    elif _are_contents(item.get("clientHistory")):
        yield from _saved(source, as_list(item["clientHistory"]), as_dict(item.get("toolCall")))
    elif _are_contents(item.get("history")):
        yield from _saved(source, as_list(item["history"]))
    else:
        yield from _event_log(source)


@dataclass(slots=True)
class _State:
    """The list of messages at one time.

    messages     message records by id
    first, last  places of its first and last record
    records      number of records since the previous state
    rewound      the user undid its end
    """

    messages: dict[str, dict[str, Json]]
    first: str = ""
    last: str = ""
    records: int = 0
    rewound: bool = False


@dataclass(slots=True)
class _Session:
    id: str
    closed: list[_State] = field(default_factory=list)
    now: _State = field(default_factory=lambda: _State({}))
    ignored: Counter[str] = field(default_factory=Counter)
    copied: dict[str, str | None] = field(default_factory=dict)
    """For each answer that the program recorded itself: the id of the answer that it repeats."""

    def apply(self, where: str, item: dict[str, Json]) -> None:
        """Replays one record, with tests in the order of the program's own reader."""
        if isinstance(target := item.get("$rewindTo"), str):
            self._rewind(where, target)
        elif isinstance(item.get("id"), str):
            self._message(where, item)
        elif "$set" in item:
            changed = as_dict(item["$set"])
            if isinstance(changed.get("messages"), list):
                self._replace(where, as_list(changed["messages"]))
            else:
                self.ignored["metadata"] += 1
        elif _is_metadata(item):
            self.ignored["metadata"] += 1
        else:
            self.ignored[unknown_code(item.get("type"))] += 1

    def _count(self, where: str) -> None:
        self.now.first = self.now.first or where
        self.now.last = where
        self.now.records += 1

    def _message(self, where: str, item: dict[str, Json]) -> None:
        kind = item.get("type")
        if kind not in ("user", "gemini"):
            is_known = as_str(kind) in _UI_TYPES
            self.ignored["ui_message" if is_known else unknown_code(kind)] += 1
            if not is_known and carries_content(item):
                self.now.messages[as_str(item["id"])] = item
            return
        key = as_str(item["id"])
        before = self.now.messages.get(key)
        if before is not None and not _call_ids(before) <= _call_ids(item):
            self._store(rewound=True)  # written again without a call that it had
        self._count(where)
        self.now.messages[key] = item

    def _rewind(self, where: str, target: str) -> None:
        ids = list(self.now.messages)
        at = ids.index(target) if target in self.now.messages else 0
        self._store(rewound=True)
        if at == 0:
            self.now.first = where
        self._count(where)
        for key in ids[at:]:
            del self.now.messages[key]

    def _replace(self, where: str, items: list[Json]) -> None:
        ids = [as_str(value, "id") for value in items]
        if copies := _copies_of(self.now.messages, ids):
            for key, answer in copies.items():
                self.copied[key] = self.copied.get(answer, answer) if answer else None
            for key in ids:
                self.now.messages.pop(key, None)
        self._store(rewound=False)
        self._count(where)
        self.now.first = where
        before = [_shown(item) for item in self.now.messages.values()]
        is_given = all(_shown(as_dict(one)) in before for one in items if _is_answer(one))
        has_hole = _LOST in self.now.messages.values()
        self.now.messages = {where: _LOST} if has_hole and not is_given else {}
        for index, value in enumerate(items):
            message = as_dict(value)
            if message.get("type") in ("user", "gemini"):
                self.now.messages[name_or_none(message.get("id")) or f"{where}[{index}]"] = message
        self._store(rewound=False)  # keeps the new list, to compare the previous state with it

    def _store(self, *, rewound: bool) -> None:
        """Stores the state; the next one begins as a copy of it."""
        now = self.now
        self.closed.append(replace(now, messages=dict(now.messages), rewound=rewound))
        now.records = 0

    def events(self, names: Counter[str], faults: tuple[Problem, ...] = ()) -> Iterator[Event]:
        """Yields the last state, and each earlier state that no later one contains."""
        states = [*self.closed, self.now]
        views = [_view_of(state.messages.items(), self.id, self.copied) for state in states]
        segments, first = Segments(self.id, taken=names), ""
        conversations: list[Conversation] = []
        for at, (state, view) in enumerate(zip(states, views, strict=True)):
            segments.records += state.records
            first = first or state.first
            later = [other.compared for other in views[at + 1 :] if other.compared]
            if not view.compared or any(_starts_with(other, view.compared) for other in later):
                continue
            undone = view.compared[common_prefix(view.compared, later[0]) :] if later else ()
            if later and all(role != "assistant" for role, _ in undone):
                continue  # only messages of the user were undone
            problems = faults
            if state.rewound or (later and _starts_with(view.compared, later[0])):
                detail = "the session went on from an earlier message"
                problems += (Problem("rewound", state.last, detail, records=0),)
            conversations.append(
                Conversation(
                    id=segments.next_name(),
                    record=span(first, state.last),
                    messages=view.messages,
                    model=view.model,
                    records=segments.take_records(),
                    problems=problems,
                    context=view.context,
                )
            )
            first = ""
        yield from _with_repeats(conversations)
        yield from segments.rest("no_turns")
        yield from ignored(self.ignored)


def _event_log(source: Source) -> Iterator[Event]:
    session: _Session | None = None
    names: Counter[str] = Counter()
    for record in objects(source.records()):
        session = session or _Session(source.name)
        if isinstance(record, Problem):
            session.now.messages[record.where] = _LOST
            yield record
            continue
        where, item = record
        if _is_metadata(item) and (name := as_str(item["sessionId"])) != session.id:
            if session.now.messages:  # another session in one file
                yield from session.events(names)
                session = _Session(name)
            session.id = name
        session.apply(where, item)
    if session is not None:
        yield from session.events(names)


def _legacy(source: Source, document: dict[str, Json]) -> Iterator[Event]:
    session = _Session(as_str(document.get("sessionId")) or source.name)
    for record in objects(source.counted(as_list(document["messages"]))):
        if isinstance(record, Problem):
            session.now.messages[record.where] = _LOST
            yield record
        else:
            where, item = record
            session.apply(where, {"id": where, **item})
    written = session.now.messages.values()
    faults: tuple[Problem, ...] = ()
    if (
        "kind" not in document
        and any(item.get("type") == "gemini" for item in written)
        and not any(map(_call_ids, written))
    ):
        # In headless mode, the first versions recorded no calls, only the first text.
        detail = "this version may have called tools without recording it"
        faults = (Problem("calls_unrecorded", "file", detail, records=0),)
    yield from session.events(Counter(), faults)


def _saved(
    source: Source, contents: list[Json], pending: dict[str, Json] | None = None
) -> Iterator[Event]:
    """Yields a history that was saved as sent; `pending` is the call after a restore point."""
    keys = CallKeys(source.name)
    messages: list[Message] = []
    records = 0
    for record in objects(source.counted(contents)):
        if isinstance(record, Problem):
            yield record
        else:
            records += 1
            messages += content_messages(record[1], keys)
    if pending:
        call = ToolCall(as_str(pending.get("name")), pending.get("args"))
        last = messages[-1].parts if messages else ()
        if not any(isinstance(part, ToolCall) and part.name == call.name for part in last):
            messages.append(Message("assistant", (call,)))
    if not messages:
        yield from [Ignored("no_turns", records)] if records else []
        return
    yield Conversation(
        id="saved chat",
        record=span("[0]", f"[{len(contents) - 1}]"),
        messages=tuple(messages),
        records=records,
        context=Context.lacking(_NOT_RECORDED),
    )


READER = declared("gemini-cli", recognise=_recognise, read=read)
