"""Proposes a mapping for a file of unknown format, from the names and values of its keys.

What the file itself does not settle is a question, which its user answers before a build.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

from builder.conversation import (
    Conversation,
    Data,
    Json,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.jsonio import loads_text
from builder.problem import Problem
from builder.readers.mapping.names import (
    columns,
    definitions,
    has_word,
    is_call,
    is_usual,
    last_key,
    meaning,
    part,
    plain,
    questions,
    rank,
)
from builder.readers.mapping.propose import propose_shape, role_path
from builder.readers.mapping.read import conversations, listed, mapped_records, reading_of, role_of
from builder.readers.mapping.spec import (
    QUESTION,
    ROLES,
    CallPaths,
    ConversationPaths,
    MappingSpec,
    MessagePaths,
    ResultPaths,
    value_at,
)
from builder.readers.toolkit.marks import cut_code, trains
from builder.readers.toolkit.narrow import as_dict, as_list, one_or_many
from builder.readers.toolkit.unknown_keys import counted_names, has_words
from builder.sources.source import Record, Source
from builder.sources.sqlite_file import tables

_RECORDS, _ITEMS, _KEYS = 100, 500, 300
"""Records, items of a list and keys of an object that are examined."""
_PLACES, _DEPTH = 8, 4
"""Lists of a document that are examined, and how deep they are looked for."""
_SAID = ("text", "calls", "arguments", "system", "answer")
"""Keys by which a table of a database has parts of conversations."""
_SET = ("true", "1", "yes")
"""Values of a switch that is set: tables have them as numbers or text."""
_SHOWN = 40
"""Characters of a text that a question quotes."""
_ID = re.compile(r"[\w.:/@-]*\d[\w.:/@-]*", re.ASCII)

_TOKEN = re.compile(
    r"\s*(?:<s>|<bos>|<\|begin_of_text\|>)?\s*(?:\[INST\]|<start_of_turn>|<\|(?:im_)?start\|>"
    r"|<\|start_header_id\|>|<\|(?:system|user|assistant|turn)\|?>|<\uff5c(?:User|Assistant)\uff5c>)"
)
"""A control token of a chat template, at the beginning of a text."""
_HEAD = re.compile(
    r"^[ \t]*(#+ *)?(?:\*\*|\[|<\|?)?(system|developer|user|human|customer|assistant|ai|bot|gpt"
    r"|model|chatbot|instruction|response)(?:\*\*|\|?>|\])?[ \t]*(?::|$)",
    re.IGNORECASE | re.MULTILINE,
)
"""The line that begins a message in a transcript. Instruction and response have a `#` before."""


class _Records(NamedTuple):
    """The first records of a source, and the query or the path in the document that finds them.

    items  the list that they are items of, if its name does not say that these are independent
    """

    rows: Sequence[Json]
    path: str | None = None
    query: str | None = None
    questions: Sequence[str] = ()
    items: Sequence[str] = ()


class _Proposed(NamedTuple):
    """A proposal for records, and what it reads in them: messages, by record or all, and events."""

    spec: MappingSpec
    sections: dict[str, Any]
    questions: list[str]
    rows: list[dict[str, Json]]
    groups: list[list[Json]]
    events: list[Conversation]

    @property
    def messages(self) -> list[Json]:
        """Returns the mapped messages."""
        return [one for group in self.groups for one in group]

    def texts(self, *roles: str) -> list[str]:
        """Returns the texts of all roles, or of some."""
        messages = [one for event in self.events for one in event.messages
                    if not roles or one.role in roles]  # fmt: skip
        return [one.text for message in messages for one in message.parts if isinstance(one, Text)]


def suggest(source: Source) -> str | None:
    """Returns a mapping for the source as YAML; None if nothing in it looks like a conversation."""
    found = [one for records in _records(source) if (one := _proposed(records)) is not None]
    best = max(found, key=lambda one: sum(map(len, one.texts())), default=None)
    if best is None:
        return None
    import yaml  # noqa: PLC0415 - all modules of readers are imported to find the readers

    unread = [*_unread(best)]
    known = best.texts()
    asked = [path for path, value in unread if _asks(path, value)
             and not (isinstance(value, str) and value in known)]  # fmt: skip
    words = counted_names(path for path, value in unread if has_words(value) and path not in asked)
    rest = counted_names(path for path, _ in unread if path not in asked)
    questions = [*best.questions, *_doubts(best)]
    if asked:
        names = ", ".join(map(repr, [*dict.fromkeys(asked)][:8]))
        questions.append(f"message: {names} is not read: did the model see it, or say it?")
    lines = [f"# Proposed for {source.name} (docs/mapping.md)."]
    lines += [f"{QUESTION}{line}" for line in dict.fromkeys(questions)]
    lines += [f"# Not read, name it if the model saw it: {', '.join(words)}"] if words else []
    if other := [name for name in rest if name not in words]:
        lines.append(f"# Other keys: {', '.join(other)}")
    head = {"query": best.spec.query, "records": best.spec.records}
    head = {key: value for key, value in head.items() if value is not None}
    text = yaml.safe_dump(head | best.sections, sort_keys=False, allow_unicode=True, width=100)
    return "\n".join([*lines, text])


def examined_keys(source: Source) -> list[str]:
    """Returns the keys of the records that `suggest` examines, at most 16 and `*`.

    One whose text is JSON is `json(key)`, as a mapping reads it.
    """
    found = columns(next(_records(source), _Records([])).rows, 0)
    keys = counted_names(last_key(path) for path in found if not path.endswith(")"))
    return [f"json({key})" if f"json({part(key)})" in found else key for key in keys]


def _proposed(records: _Records) -> _Proposed | None:
    rows = [as_dict(_cut(record)) for record in records.rows if isinstance(record, dict)]
    found = propose_shape(rows) if rows else None
    if found is None:
        return None
    conversation, message = found
    section = message.section
    call, result = CallPaths(**section.get("call", {})), ResultPaths(**section.get("result", {}))
    paths = MessagePaths(**section | {"call": call, "result": result})
    spec = MappingSpec(paths, ConversationPaths(**conversation), records.path, records.query)
    questions = [*message.questions, *records.questions]
    if str(conversation.get("messages")).startswith("[{") and "session" not in conversation:
        questions += [f"records: is each item of {one!r} a conversation?" for one in records.items]
    groups: list[list[Json]] = [[*rows]]
    if not spec.are_messages:
        groups = [listed(value_at(spec.conversation.messages, row)) for row in rows]
    events = conversations(spec, [Record(f"record {at}", row) for at, row in enumerate(rows, 1)])
    return _Proposed(
        spec,
        {"conversation": conversation, "message": section},
        questions,
        rows,
        groups,
        [one for one in events if isinstance(one, Conversation)],
    )


def _cut(value: Json) -> Json:
    """Returns a value without the ends of long lists and objects."""
    if isinstance(value, list):
        return [_cut(one) for one in value[:_ITEMS]]
    if isinstance(value, dict):
        return {key: _cut(one) for key, one in islice(value.items(), _KEYS)}
    return value


def _unread(found: _Proposed) -> Iterator[tuple[str, Json]]:
    """Yields (path, value) of what no path reads of the records and their messages."""
    reading, spec = reading_of(found.spec), found.spec
    unread = [one for row in found.rows for one in reading.record.unread(row)
              if not spec.are_messages or role_of(spec.message, row) != "skip"]  # fmt: skip
    for message in () if spec.are_messages else found.messages:
        unread += reading.message.unread(message)
    yield from (one for one in unread if one[1] not in (None, "", [], {}))


def _doubts(found: _Proposed) -> Iterator[str]:
    """Yields a line for each thing in what is read that the user of a proposal has to decide."""
    spec = found.spec
    roles = [(role_of(spec.message, one), one) for one in found.messages]
    yield from _skipped(spec, [one for role, one in roles if role == "skip"])
    for items in found.groups:
        for path, values in columns(items).items():
            if is_usual("parent", path) and len({*map(str, values)}) < len(values):
                yield f"conversation: several messages have one {path!r}: are these branches one?"
    yield from _flags(found)
    unusual: Counter[str] = Counter()
    for event in found.events:
        unusual += _unusual(event)
    yield from (text.format(unusual[key]) for key, text in questions().items() if unusual[key])
    for role in ("user", "assistant"):
        texts = found.texts(role)
        rendered = sum(map(is_transcript, texts))
        if rendered and 2 * rendered >= min(len(texts), len(found.events)):
            what = "are whole transcripts (rendered prompts), which a mapping cannot split"
            yield f"message.text: {rendered} texts of the {role} {what}"
    paths = str(spec.message.text or "").split(" || ")
    if spec.message.result.text and spec.message.results is None:
        tools = [one for role, one in roles if role == "tool"]
        yield from _both("message.result.text", [spec.message.result.text, *paths], tools)
    spoken = [one for role, one in roles if role not in ("tool", "skip")]
    yield from _both("message.text", paths, spoken)


def _asks(path: str, value: Json) -> bool:
    """Returns whether a value that no path reads may be a part of the conversation.

    A list with words or calls is, and so is a text under a name of an answer, a result or a text,
    unless it is an id.
    """
    if is_call(value) or (isinstance(value, list) and has_words(value)):
        return True
    is_named = has_word("texts", path) or is_usual("prompt", path) or is_usual("answer", path)
    is_named = is_named or (is_usual("calls", path) and not isinstance(value, str))
    if isinstance(value, dict):
        return any(_asks(path if is_named else key, one) for key, one in value.items())
    if not is_named:
        return has_words(value) and has_word("texts", path.replace(".", "_"))
    if not isinstance(value, str) or has_word("numbers", path) or not value.strip():
        return False
    return has_words(value) or not (_ID.fullmatch(value) or has_word("people", path))


def is_transcript(text: str) -> bool:
    """Returns whether a text is itself a rendered conversation, and no message of one.

    It begins with a control token of a template, or it has messages of both speakers under lines
    that name them, and begins with such a line or ends with an open one of the model.
    """
    if _TOKEN.match(text):
        return True
    marked = ("instruction", "response")
    heads = [one for one in _HEAD.finditer(text) if one[1] or one[2].lower() not in marked]
    ends = [*(one.start() for one in heads[1:]), len(text)]
    said = [("user" if one[2].lower() == "instruction" else meaning(one[2]),
             bool(text[one.end() : end].strip()))
            for one, end in zip(heads, ends, strict=False)]  # fmt: skip
    if ("user", True) not in said:
        return False
    is_whole = ("assistant", True) in said[said.index(("user", True)) :]
    begins = is_whole and not text[: heads[0].start()].strip()
    return begins or said[-1] == ("assistant", False)


def _skipped(spec: MappingSpec, items: Sequence[Json]) -> Iterator[str]:
    """Yields a question for each value of the role that is skipped and has text."""
    texts: dict[str, str] = {}
    for item in items:
        value = plain(value_at(spec.message.role, item))
        for path, words in columns([item]).items():
            is_text = isinstance(words[0], str) and has_words(words[0]) and words[0] != value
            if is_text and path != spec.conversation.system:
                texts.setdefault(value, words[0])
    for value, text in texts.items():
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        yield f"message.roles: did the model see {value!r}, which is skipped ({shown!r})?"


def _flags(found: _Proposed) -> Iterator[str]:
    """Yields a question for each key that says that the model did not see, or did not give, it.

    Flags of notes and of what was withdrawn; and those of rows that say that an answer was cut.
    """
    read = {path for _, path in found.spec.paths()}
    once = [] if found.spec.are_messages else found.rows
    for path, values in columns([*once, *found.messages], 1).items():
        is_set = sum(isinstance(one, str | int) and str(one).lower() in _SET for one in values)
        hidden = sum(isinstance(one, str) and has_word("private", one) and not has_words(one)
                     for one in values)  # fmt: skip
        if path in read:
            continue
        if has_word("private", path) and is_set + hidden:
            count = is_set + hidden
            yield f"message: what has {path!r} set ({count}) is read: did the model see it?"
        elif hidden and not is_usual("id", path) and not is_usual("text", path):
            yield f"message: {path!r} says that {hidden} are notes: did the model see them?"
    for path, values in columns(once, 0).items():
        cut = sum(cut_code({path: one}) is not None or trains(path, one) is False for one in values)
        if cut:
            what = "were cut, or are not trained: a mapping reads that in messages alone"
            yield f"conversation: {path!r} says that {cut} answers {what}"


def _unusual(event: Conversation) -> Counter[str]:
    """Returns what is unusual in a conversation, by its question in names.toml."""
    messages, roles = event.messages, {one.role for one in event.messages}
    parts = [part for one in messages for part in one.parts]
    known = {name for part in parts if isinstance(part, ToolCall) for name in (part.id, part.name)}
    inner = [one for part in parts if isinstance(part, ToolResult) for one in part.content]
    objects = [one.value for one in inner if isinstance(one, Data)]
    codes = Counter(part.code for part in parts if isinstance(part, Unparsed))
    texts = [part.text for part in parts if isinstance(part, Text)]
    unusual = Counter({
        "no user": int("user" not in roles <= {*ROLES}),
        "no answer": int("assistant" not in roles <= {*ROLES}),
        "nothing": sum(not one.parts for one in messages),
        "object": sum(isinstance(one, Data) and isinstance(one.value, dict) for one in parts),
        "unknown": codes["unknown_part"],
        "no call": codes["bad_call"],
        "call in text": sum(is_call(loads_text(text)) for text in texts),
        "by name": sum(isinstance(one, dict) and {*one} <= known for one in objects),
        "uncalled": event.changes.get("unmapped_call", 0),
    })  # fmt: skip
    opened = 0
    for one, after in zip(messages, [*messages[1:], None], strict=True):
        calls = sum(isinstance(part, ToolCall) for part in one.parts)
        results = [part for part in one.parts if isinstance(part, ToolResult)]
        is_loose = any(not (part.call_id or part.name) for part in results)
        unusual["no ids"] += opened > 1 and is_loose
        opened = 0 if results else opened + calls
        if after is not None:
            unusual["unanswered"] += bool(calls) and after.role == "user"
            unusual["silent"] += bool(calls) and _is_answer(after)
            unusual["answers"] += not calls and _is_answer(one) and _is_answer(after)
        elif one.role == "assistant":
            is_thought = all(isinstance(part, Reasoning) for part in one.parts)
            unusual["thought"] += bool(one.parts) and is_thought
    return unusual


def _is_answer(message: Message) -> bool:
    return message.role == "assistant" and any(isinstance(one, Text) for one in message.parts)


def _both(key: str, paths: Sequence[str], items: Sequence[Json]) -> Iterator[str]:
    """Yields a question where two alternatives of a path find a different text in one message."""
    for first, second in pairwise(paths):
        pairs = [(value_at(first, one), value_at(second, one)) for one in items]
        several = sum(isinstance(one, str) and isinstance(other, str) and one != other
                      and has_words(one) and has_words(other) for one, other in pairs)  # fmt: skip
        if several:
            yield f"{key}: {several} have both {first!r} and {second!r}: which is the text?"


def _records(source: Source) -> Iterator[_Records]:
    """Yields the records that a source may hold: of a JSON document, those of each list in it."""
    if source.peek.kind == "sqlite":
        yield from _of_database(source)
        return
    document = source.unread_copy().document() if source.peek.kind == "json" else None
    if isinstance(document, list) and document and all(map(_are_objects, document)):
        path = "[*].{messages: @}"
        yield _Records(as_list(value_at(path, [*document]))[:_RECORDS], path)
        return
    yield _Records(_first(source, MappingSpec(MessagePaths())))
    if isinstance(document, dict | list):
        yield from islice(_nested(document), _PLACES)


def _first(source: Source, spec: MappingSpec) -> list[Json]:
    records = islice(mapped_records(spec, source.unread_copy()), _RECORDS)
    return [one.value for one in records if not isinstance(one, Problem)]


def _are_objects(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _nested(document: Json) -> Iterator[_Records]:
    """Yields the records of each list of objects in a document, the outer ones first.

    What stands beside a list, and may be said to the model, is asked about.
    """
    start, items = ("[]", as_list(document)) if isinstance(document, list) else ("", [document])
    pending: list[tuple[str, Sequence[Json], int, list[str]]] = [(start, items, 0, [])]
    while pending:
        path, inside, depth, beside = pending.pop(0)
        found = {key: values for key, values in columns(inside, 0).items() if key[-1] != ")"}
        for key, values in found.items():
            full = f"{path}.{key}" if path else key
            full += "[]" if all(isinstance(one, list) for one in values) else ""
            inner = [one for value in values for one in one_or_many(value)][:_RECORDS]
            if not inner or not all(isinstance(one, dict) for one in inner):
                continue
            lost = [*beside]
            for one, held in found.items():
                is_said = any(is_usual(kind, one) for kind in ("system", "prompt", "answer"))
                is_head = (is_said and any(map(has_words, held))) or any(map(definitions, held))
                is_head = is_head or any(role_path(as_list(value)) for value in held)
                lost += [one] if is_head and one != key else []
            if full.endswith("[]"):
                what = "stand beside the records and are not read: did the model see them?"
                asked = [f"records: {', '.join(map(repr, lost))} {what}"] if lost else []
                each = [] if is_usual("one_each", key) else [key]
                yield _Records(inner, full, questions=asked, items=each)
            if depth < _DEPTH:
                pending.append((full, [*inner], depth + 1, lost))


def _of_database(source: Source) -> Iterator[_Records]:
    """Yields the records of the table that is likest to messages, and asks about the others."""
    found = tables(source)
    likeness = {name: sum(any(rank(key, one) < 20 for one in names)
                          for key in ("role", "text", "session"))
                for name, names in found.items()}  # fmt: skip
    likely = sorted(found, key=lambda name: (-likeness[name], name))
    for main in likely[:1]:
        query = f'SELECT * FROM "{main}"'  # noqa: S608 - shown to the user, who runs it
        rest = [f"{name!r} ({', '.join(sorted(found[name]))})" for name in likely[1:6]
                if any(is_usual(key, one) for key in _SAID for one in found[name])]  # fmt: skip
        what = f"query: did the model see what is in {', '.join(rest)}? Then join it"
        rows = _first(source, MappingSpec(MessagePaths(), query=query))
        yield _Records(rows, query=query, questions=[what] if rest else [])
