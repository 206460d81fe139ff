"""Pi and OpenClaw."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePosixPath

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Data,
    Event,
    Json,
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import as_harness
from builder.readers.toolkit.comparison import with_session_keys
from builder.readers.toolkit.history import Links, lost_message, supply_results
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    name_or_none,
    one_or_many,
    unknown_code,
)
from builder.readers.toolkit.places import Segments, ignored, span
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.siblings import from_sibling
from builder.readers.toolkit.unknown_keys import (
    carries_content,
    message_keys,
    noted,
    unknown_message,
)
from builder.readers.traces.parts import read_part
from builder.sources.source import Source

# -- finds the context of each answer of a session -------------------------------------------------

Entry = dict[str, Json]

_KEEPS_PLACE = re.compile(
    r"claude-(fable-5|haiku-5[.-]5|opus-(4[.-]8|5)|sonnet-5[.-]5)|gpt-(5\.[456]|[6-9])"
    r"|deepseek-v4-pro|kimi-(k[3-9]|k2\.[67]|for-coding)|k3"
)
_CATALOGUE = frozenset({
    "anthropic", "azure", "deepseek", "fireworks", "github-copilot", "kimi-coding", "moonshotai",
    "moonshotai-cn", "openai", "openai-codex", "opencode", "opencode-go", "openrouter",
})  # fmt: skip
"""Models and providers to which the program sends later system messages at their place. For all
others it folds them into the first one. Which it did is not logged, nor whether it made the schemas
of tools stricter, which it does for models of these providers."""


@dataclass(frozen=True, slots=True)
class Node:
    """An entry in the tree. In version 1, `id` is derived from its position."""

    id: str
    parent: str | None
    where: str
    entry: Entry

    @property
    def role(self) -> str:
        """The role of the entry's message, or ""."""
        return as_str(self.entry, "message", "role")

    @property
    def time(self) -> float:
        """When the message was sent or requested, in milliseconds; 0 if it is not logged."""
        value: Json = as_dict(self.entry.get("message")).get("timestamp")
        return float(value) if isinstance(value, int | float) else 0.0

    @property
    def answers(self) -> bool:
        """Returns whether the entry is an answer of the model."""
        return self.role == "assistant"

    @property
    def is_aborted(self) -> bool:
        """Returns whether the entry is an aborted or failed answer, which is not sent again."""
        message = as_dict(self.entry.get("message"))
        is_failed = message.get("stopReason") in ("error", "aborted")
        return self.answers and (is_failed or bool(message.get("retryRecovery")))


def kept(before: Sequence[Node], compaction: Node, places: Sequence[Node | None]) -> list[Node]:
    """Returns the entries before a compaction that stayed in the context with its summary."""
    first = compaction.entry.get("firstKeptEntryId")
    index = compaction.entry.get("firstKeptEntryIndex")
    if first is None and isinstance(index, int) and 0 <= index < len(places):
        place = places[index]
        first = place.id if place else None
    at = next((at for at, node in enumerate(before) if node.id == first), len(before))
    return [
        node
        for node in before[at:]
        if node.entry.get("type") != "compaction" and node.role != "system"
    ]


@dataclass(frozen=True, slots=True)
class _Prompt:
    """The system prompt and tools in effect; `is_logged`: the log has any."""

    texts: tuple[str, ...] = ()
    sections: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, Json] = field(default_factory=dict)
    is_logged: bool = False

    def after(self, message: Entry) -> _Prompt:
        """Returns the prompt after a system message: sections of null and removed tools are gone.

        A replaced section keeps its place, a new one comes last.
        """
        text = _plain_text(message.get("content"))
        sections, tools = dict(self.sections), dict(self.tools)
        for name, value in as_dict(message.get("sections")).items():
            if isinstance(value, str):
                sections[name] = value
            else:
                sections.pop(name, None)
        for tool in as_list(message.get("toolsRemoved")):
            tools.pop(as_str(tool, "name"), None)
        for tool in as_list(message.get("toolsAdded")):
            tools[as_str(tool, "name")] = tool
        return _Prompt((*self.texts, text) if text else self.texts, sections, tools, True)

    @property
    def text(self) -> str:
        """The system prompt as the program sends it."""
        return "\n\n".join(filter(None, ["\n\n".join(self.texts), *self.sections.values()]))


@dataclass(frozen=True, slots=True)
class _PathStretch:
    """The entries of a stretch, and the context of its last answer.

    system       the system text of the request; None: the log has none
    tools        the tools by name
    in_place     later system messages were sent at their place
    edits        by the id of the entry: its new content, or None if it was taken out
    early        ids of the answers that did not have all of the tools yet
    api          the API that the request used, as logged, or ""
    exact_tools  the tools were sent as they are logged
    """

    nodes: tuple[Node, ...] = ()
    system: str | None = None
    tools: Mapping[str, Json] = field(default_factory=dict)
    in_place: bool = False
    edits: Mapping[str, Json] = field(default_factory=dict)
    early: frozenset[str] = frozenset()
    api: str = ""
    exact_tools: bool = True


def _find_stretches(nodes: Sequence[Node]) -> list[_PathStretch]:
    """Returns the stretches of a segment in order, at least one; the last has all its entries."""
    prompt = _Prompt()
    head: _Prompt | None = None  # the first system message, if nothing precedes it
    edits: dict[str, Json] = {}
    known: set[str] = set()  # entries in the context of the stretch's last answer
    sent: _PathStretch | None = None
    end = 0
    stretches: list[_PathStretch] = []
    has_content = False
    for at, node in enumerate(nodes):
        change = _system_message(node)
        if change is not None:
            prompt = prompt.after(change)
            head = prompt if head is None and not has_content else head
        elif node.entry.get("type") == "context_edit":
            edits[as_str(node.entry.get("targetId"))] = node.entry.get("replacement")
        has_content = has_content or node.entry.get("type") in ("message", "custom_message")
        if not node.answers or node.is_aborted:
            continue
        current = _context(node, prompt, head, edits)
        if sent is not None and not _extends(current, sent, known):
            stretches.append(replace(sent, nodes=tuple(nodes[: _with_results(nodes, end)])))
        elif sent is not None:
            early = sent.early
            if len(current.tools) > len(sent.tools):
                early = frozenset(before.id for before in nodes[:at] if before.answers)
            current = replace(current, early=early)
        known.update(node.id for node in nodes[end : at + 1] if not node.is_aborted)
        sent, end = current, at + 1
    last = sent or _context(None, prompt, None, edits)
    return [*stretches, replace(last, nodes=tuple(nodes))]


def edited(entry: Entry, content: Json) -> Entry:
    """Returns an entry with the content that an edit gave it."""
    message = entry.get("message")
    if not isinstance(message, dict):
        return {**entry, "content": content}
    if isinstance(content, str) and message.get("role") in ("assistant", "toolResult"):
        content = [{"type": "text", "text": content}]
    return {**entry, "message": {**message, "content": content}}


def _plain_text(content: Json) -> str:
    if isinstance(content, str):
        return content
    blocks = as_dicts(content)
    return "\n".join(as_str(block.get("text")) for block in blocks if block.get("type") == "text")


def _system_message(node: Node) -> Entry | None:
    if node.entry.get("type") == "compaction":
        message = node.entry.get("systemMessage")
        return message if isinstance(message, dict) else None
    return as_dict(node.entry.get("message")) if node.role == "system" else None


def _context(
    answer: Node | None, prompt: _Prompt, head: _Prompt | None, edits: Mapping[str, Json]
) -> _PathStretch:
    """Returns the context of an answer, as a stretch without entries."""
    message = as_dict(answer.entry.get("message")) if answer is not None else {}
    in_place = _keeps_place(message)
    shown = head if in_place else prompt
    return _PathStretch(
        system=shown.text if shown is not None and shown.is_logged else None,
        tools=prompt.tools,
        in_place=in_place,
        edits=dict(edits),
        api=as_str(message.get("api")),
        exact_tools=as_str(message.get("provider")) not in _CATALOGUE
        or not any(as_dict(tool).get("constrainedSampling") for tool in prompt.tools.values()),
    )


def _keeps_place(message: Entry) -> bool:
    model = as_str(message.get("model")).rpartition("/")[2]
    return as_str(message.get("provider")) in _CATALOGUE and _KEEPS_PLACE.match(model) is not None


def _extends(new: _PathStretch, old: _PathStretch, known: set[str]) -> bool:
    """Returns whether the context `new` adds to `old` only; `known`: entries that `old` had."""
    if (new.system, new.in_place) != (old.system, old.in_place):
        return False
    if any(new.tools.get(name) != tool for name, tool in old.tools.items()):
        return False
    return all(
        target in old.edits and old.edits[target] == value
        for target, value in new.edits.items()
        if target in known
    )


def _with_results(nodes: Sequence[Node], end: int) -> int:
    """Returns the position after the results that follow an answer."""
    for at in range(end, len(nodes)):
        if nodes[at].entry.get("type") == "message":
            if nodes[at].role != "toolResult":
                break
            end = at + 1
    return end


# -- converts entries of a Pi session to messages, as the program words them for the model ---------

ROLES = frozenset({
    "system", "user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage",
    "compactionSummary", "branchSummary",
})  # fmt: skip
"""The roles of messages that the program knows; it sends no others."""


_ROLE_OF = {
    "compaction": "compactionSummary", "branch_summary": "branchSummary",
    "custom_message": "custom",
}  # fmt: skip
"""Roles of entries that are messages themselves."""


def _entry_message(entry: Entry, turn: str) -> Message | None:
    """Returns the message that an entry adds to the context, or None.

    `turn` is the id of the entry: each answer of the model is an entry of its own.
    """
    kind = as_str(entry.get("type"))
    if kind != "message":
        return _message(entry, _ROLE_OF.get(kind, ""), turn)
    message = as_dict(entry.get("message"))
    read = _message(message, as_str(message.get("role")), turn)
    return read and noted([read], message, message_keys("pi"))[0]


def _hides_reasoning(entry: Entry) -> bool:
    """Returns whether an answer contains encrypted thoughts."""
    blocks = as_dicts(entry, "message", "content")
    return any(
        block.get("type") == "thinking"
        and (bool(block.get("redacted")) or not as_str(block.get("thinking")).strip())
        for block in blocks
    )


def _patch_message(message: Entry) -> Message | None:
    """Returns the message that a later system message is at its place; None: it has no text."""
    parts = [_plain_text(message.get("content"))]
    for name, value in as_dict(message.get("sections")).items():
        if isinstance(value, str):
            parts.append(f'Updated system prompt section "{name}":\n\n{value}')
        else:
            parts.append(f'Removed system prompt section "{name}".')
    text = "\n\n".join(filter(None, parts))
    return Message("system", (Text(text, harness=True),)) if text else None


def _image_messages(messages: Iterable[Message], api: str) -> list[Message]:
    """Returns the messages with images of results where the API has them.

    Results of Chat Completions are text: the images of all results of a turn follow in a user
    message. A result without text has a placeholder.
    Source: convertMessages of @earendil-works/pi-ai, 0.49 to 1.5.
    """
    if api != "openai-completions":
        return [*messages]
    found: list[Message] = []
    images: list[Part] = []
    for message in [*messages, None]:
        if message is None or message.role != "tool":
            if images:
                heading = Text("Attached image(s) from tool result:", harness=True)
                found.append(Message("user", (heading, *images)))
            images = []
            found += [message] if message is not None else []
            continue
        parts = [part for part in message.parts if isinstance(part, ToolResult)]
        for at, part in enumerate(parts):
            texts = tuple(one for one in part.content if not isinstance(one, Media))
            if len(texts) == len(part.content):
                continue
            images += (one for one in part.content if isinstance(one, Media))
            if not any(isinstance(one, Text) and one.text.strip() for one in texts):
                texts = (Text("(see attached image)"),)
            parts[at] = replace(part, content=texts)
        found.append(replace(message, parts=tuple(parts)))
    return found


def no_result(call: ToolCall) -> ToolResult:
    """Returns the result that the program sends for a call without one.

    Source: transform-messages of @mariozechner/pi-ai, seen in 0.31 to 0.74.
    """
    return ToolResult((Text("No result provided"),), call.id, call.name, is_error=True)


def _message(message: Entry, role: str, turn: str) -> Message | None:
    match role:
        case "assistant":
            return _answer(message, turn)
        case "toolResult":
            result = ToolResult(
                content=tuple(_contents(message.get("content"))),
                call_id=name_or_none(message.get("toolCallId")),
                name=name_or_none(message.get("toolName")),
                is_error=message.get("isError") is True,
            )
            return Message("tool", (result,))
        case "bashExecution" if not message.get("excludeFromContext"):
            return Message("user", (Text(_command_text(message), harness=True),))
        case "custom" | "hookMessage":
            return Message("user", as_harness(_contents(message.get("content"))))
        case "compactionSummary" | "branchSummary":
            return _summary(message, role)
        case "user":
            return Message(role, tuple(_contents(message.get("content"))))
        case _:
            return None


def _answer(message: Entry, turn: str) -> Message:
    blocks = [one for one in as_dicts(message.get("content")) if not one.get("redacted")]
    parts = [
        replace(part, key=f"{turn}/{at}") if isinstance(part, ToolCall) else part
        for at, part in enumerate(part for block in blocks for part in read_part(block))
    ]
    if message.get("stopReason") == "length":
        parts.append(Unparsed("", "truncated_answer"))
    model, response = (name_or_none(message.get(key)) for key in ("model", "responseId"))
    return Message("assistant", tuple(parts), turn, model=model, response=response)


def _contents(content: Json) -> list[Text | Data | Media]:
    if isinstance(content, str):
        return [Text(content)]
    parts: list[Text | Data | Media] = []
    for value in as_list(content):
        block = as_dict(value)
        match block.get("type"):
            case "text":
                parts.append(Text(as_str(block.get("text"))))
            case "image":
                parts.append(Media("image", as_str(block.get("mimeType"))))
            case _:
                parts.append(Data(value, compact=True))
    return parts


_SUMMARIES = {
    "compactionSummary": (
        "The conversation history before this point was compacted into the following summary:", "\n"
    ),
    "branchSummary": (
        "The following is a summary of a branch that this conversation came back from:", ""
    ),
}  # fmt: skip
"""The heading of a summary, and what precedes its closing tag."""


def _summary(holder: Entry, role: str) -> Message | None:
    if sent := _contents(as_dict(holder.get("message")).get("content")):
        return Message("user", as_harness(sent))  # of Letta Code's store
    heading, end = _SUMMARIES[role]
    summary = as_str(holder.get("summary"))
    if role == "branchSummary" and not summary:
        return None
    text = f"{heading}\n\n<summary>\n{summary}{end}</summary>"
    return Message("user", (Text(text, harness=True),))


def _command_text(message: Entry) -> str:
    output = as_str(message.get("output"))
    text = f"Ran `{as_str(message.get('command'))}`\n"
    text += f"```\n{output}\n```" if output else "(no output)"
    code = message.get("exitCode")
    if message.get("cancelled"):
        text += "\n\n(command cancelled)"
    elif isinstance(code, int) and code != 0:
        text += f"\n\nCommand exited with code {code}"
    file = message.get("fullOutputPath")
    if message.get("truncated") and isinstance(file, str) and file:
        text += f"\n\n[Output truncated. Full output: {file}]"
    return text


# -- rules of Oh My Pi, OpenClaw and Letta Code's store, which descend from Pi ---------------------

_RESET = "reset_boundary"
SETTINGS = frozenset({
    "session_init", "title", "title_change", "service_tier_change", "mode_change", "model_usage",
    "ttsr_injection", "archive", "credential_pin", _RESET,
})  # fmt: skip
"""Types of Oh My Pi's entries that are no messages."""

_MIRRORS = frozenset({"delivery-mirror", "gateway-injected"})
"""Names of models in OpenClaw's rows that repeat a text sent to a channel."""


def _is_unlike_log(entry: Mapping[str, Json]) -> bool:
    """Returns whether the context behind an entry differs from the log in what is not logged.

    A compaction by the provider, or one that keeps the past as pictures, is sent in that form; a
    hint to plan is taken out of the context again.
    """
    if entry.get("type") == "custom_message":
        return entry.get("customType") == "prewalk-plan"
    kept = as_dict(entry.get("preserveData")) if entry.get("type") == "compaction" else {}
    return any(key == "openaiRemoteCompaction" or "snapcompact" in key for key in kept)


def parent_of(
    parent: str, session: str, last: tuple[str, Mapping[str, Json]] | None, *, answered: bool
) -> str | None:
    """Returns the parent of an entry that names no entry; None: it is the first.

    OpenClaw may name a call of the last entry (`last`: its id and content), or the session, before
    the first answer for entries that follow one another.
    """
    if last is None:
        return None if parent == session else parent
    blocks = as_dicts(as_dict(last[1].get("message")).get("content"))
    if any(one.get("type") == "toolCall" and one.get("id") == parent for one in blocks):
        return last[0]
    if parent == session:
        return None if answered else last[0]
    return parent


# -- finds the answers that a branched session copied from the file of its parent session ----------


def _answer_digest(entry: dict[str, Json]) -> bytes:
    return hashlib.blake2b(dumps(entry.get("message")).encode("utf-8", "replace")).digest()


def _answers(parent: Source) -> Collection[bytes]:
    entries = (
        record[1] for record in objects(parent.json_lines(), "") if isinstance(record, tuple)
    )
    return frozenset(
        _answer_digest(entry)
        for entry in entries
        if as_dict(entry.get("message")).get("role") == "assistant"
    )


# -- puts a prompt that was sent while the model worked before the answer that it got --------------


def in_order(path: Sequence[Node]) -> tuple[list[Node], frozenset[str]]:
    """Returns the path with such prompts in the place where their answers begin, and their ids.

    Answers from there on were sent what precedes them in another order, or not all of it.
    """
    ordered = list(path)
    moved: set[str] = set()
    for node in path:
        if node.role != "user":
            continue
        at = ordered.index(node)
        own = _own_answer(ordered, at)
        if own is not None:
            ordered.insert(own, node)  # before the node there, which is later than `at`
            del ordered[at]
            moved.add(node.id)
    return ordered, frozenset(moved)


def _own_answer(path: Sequence[Node], at: int) -> int | None:
    """Returns where the answer to an overtaken prompt is; None if the prompt was not overtaken.

    The next answer was requested before the prompt, and the prompt's own follows another answer
    that was requested after it.
    """
    asked = path[at].time
    last: Node | None = None
    for position in range(at + 1, len(path)):
        node = path[position]
        if node.role == "user":
            return None
        if node.answers:
            requested = node.time
            if last is None and requested >= asked:
                return None
            if last is not None and last.answers and asked <= requested < last.time:
                return position
        if node.role:
            last = node
    return None


# -- reads Pi coding agent sessions (also OpenClaw's) ----------------------------------------------

NAME = "pi"

_VERSION = 3  # of sessions with known rules
_MISSING = frozenset({"system", "tools"})

_IN_CONTEXT = frozenset({
    "message", "compaction", "branch_summary", "custom_message", "context_edit",
})  # fmt: skip
_HOLE = "hole"
_SETTINGS = frozenset({
    "model_change", "thinking_level_change", "label", "session_info", "custom", "usage",
    *SETTINGS,
})  # fmt: skip


def _recognise(source: Source) -> str | None:
    """Claims a header with a folder or version, or messages in a shape that only Pi writes."""
    for value in source.peek.objects:
        kind = value.get("type")
        # Hugging Face's traces have a harness, those of DeepSeek Harness a createdAt.
        is_other = not value.keys().isdisjoint({"harness", "createdAt"})
        if kind == "session" and isinstance(value.get("id"), str) and not is_other:
            if "cwd" in value or "version" in value:
                return "a session header"
        elif kind == "message":
            message = as_dict(value.get("message"))
            if message.get("role") == "toolResult" or {"stopReason", "api"} <= message.keys():
                return "messages with toolResult or stopReason"
    return None


def read(source: Source) -> Iterator[Event]:
    """Yields the session's segments, abandoned branches and aborted answers."""
    taken: set[str] = set()
    stem = source.name.rpartition("/")[2].partition(".")[0]
    session = _Session(stem or "session", source.name)
    for record in objects(source.json_lines(), "an entry that is "):
        if isinstance(record, Problem):
            session.lose()
            yield record
            continue
        where, entry = record
        if entry.get("type") == "session":
            yield from session.events()  # concatenated files
            if session.nodes:
                taken.add(session.segments.name)
            logged = name_or_none(entry.get("id"))
            name = logged or session.segments.name
            name = f"{name}@{where}" if name in taken else name
            session = _Session(name, name if logged else f"{source.name}/{where}")
            session.segments.records = 1
            session.model = name_or_none(entry.get("modelId"))
            session.version = entry.get("version")
            session.folder = name_or_none(entry.get("cwd"))
            named = as_str(entry.get("parentSession") or entry.get("branchedFrom"))
            parent = PurePosixPath(named.replace("\\", "/")).name  # in the folder of this file
            session.copied = from_sibling(source, parent, _answers) or ()
            session.places = [None]
        else:
            yield from session.add(where, entry)
    yield from session.events()


class _Session:
    """All entries of a session, and which of them are in a conversation.

    scope    makes the keys of its calls unique
    places   nodes by line, which version 1 refers to; None: the header
    segments its names, and its records that no conversation counts
    emitted  ids of the entries that a conversation contains or that are ignored
    unknown  ids of the entries of unknown types that carry content
    copied   digests of the answers that the file of the parent session has
    prompt   that of a sub-agent, if its beginning has it
    injects  ids of entries after rules that the log does not show
    snapshots  by the id of a message that may be written again: its last entry
    holes    stand for the entries that others name as their parents and that the file lacks
    """

    def __init__(self, name: str, scope: str) -> None:
        self.segments = Segments(name)
        self.scope = scope
        self.model: str | None = None
        self.version: Json = None
        self.folder: str | None = None
        self.places: list[Node | None] = []
        self.nodes: dict[str, Node] = {}
        self.ignored: Counter[str] = Counter()
        self.emitted: set[str] = set()
        self.unknown: set[str] = set()
        self.copied: Collection[bytes] = ()
        self.prompt: str | None = None
        self.injects: set[str] = set()
        self.answered, self.snapshots = False, dict[str, str]()
        self.moved = frozenset[str]()
        self.holes: dict[str, Node] = {}
        self.lost = set[Json]()  # indexes of the lines that cannot be read

    def lose(self) -> None:
        """Notes that a line cannot be read. Later ones name it, except in version 1."""
        self.lost.add(len(self.places))
        self.places.append(None)

    def add(self, where: str, entry: Entry) -> Iterator[Problem]:
        """Adds the next entry; yields a Problem if another entry has its id."""
        last = next(reversed(self.nodes), None)
        name = name_or_none(entry.get("id")) or f"#{len(self.places)}"
        parent = name_or_none(entry.get("parentId")) if "parentId" in entry else last
        if len(self.places) - 1 in self.lost and "parentId" not in entry:
            parent = f"#{len(self.places)} lost"
        if name in self.nodes:
            self.places.append(None)
            if entry == self.nodes[name].entry:
                self.ignored["repeated_entry"] += 1
            else:
                yield Problem("duplicate_id", where, f"another entry is called {name[:40]}")
            return
        before = None if last is None else (last, self.nodes[last].entry)
        if parent is not None and parent not in self.nodes:
            parent = parent_of(parent, self.segments.name, before, answered=self.answered)
        if before is not None and (before[1].get("type") == "ttsr_injection"):
            self.injects.add(name)
        if entry.get("type") == "session_init":
            blocks = map(as_str, one_or_many(entry.get("systemPrompt")))
            self.prompt = "\n\n".join(filter(None, blocks)) or self.prompt
        node = Node(name, parent, where, entry)
        self.answered = self.answered or node.answers
        snapshot = as_str(entry, "message", "id") if entry.get("type") == "message" else ""
        if snapshot.startswith("letta-msg-"):
            if old := self.snapshots.get(snapshot):
                self.nodes[old] = replace(self.nodes[old], entry={"type": "label"})
                self.ignored["repeated_entry"] += old not in self.emitted
                self.emitted.add(old)
            self.snapshots[snapshot] = name
        self.nodes[name] = node
        self.places.append(node)
        kind = as_str(entry.get("type"))
        role = as_dict(entry.get("message")).get("role")
        if kind in _SETTINGS:
            self.emitted.add(name)
            self.ignored[kind] += 1
        elif kind not in _IN_CONTEXT or (kind == "message" and as_str(role) not in ROLES):
            self.unknown |= {name} if carries_content(entry) else set()
            self.emitted.add(name)
            self.ignored[unknown_code(role if kind == "message" else entry.get("type"))] += 1

    def events(self) -> Iterator[Event]:
        """Yields the conversations, and the events of entries that none of them counts."""
        links = Links({name: node.parent for name, node in self.nodes.items()}, has_holes=True)
        for node in self.nodes.values():
            if node.parent is not None and node.parent in links.holes:
                hole = replace(node, id=node.parent, entry={"type": _HOLE})
                self.holes.setdefault(hole.id, hole)
        self.emitted |= links.holes
        current = next(reversed(self.nodes), None)
        if current is not None:
            yield from self._path(links.path(current))
        for leaf in links.leaves:
            if leaf != current:
                yield from self._path(links.path(leaf), abandoned=True)
        for name, node in self.nodes.items():
            if node.answers and name not in self.emitted:  # a cycle, which has no leaf
                yield from self._path(links.path(name), abandoned=True)
        self.ignored["rewound"] += len(self.nodes.keys() - self.emitted)
        yield from self.segments.rest("no_messages")
        yield from ignored(+self.ignored)

    def _path(self, names: Sequence[str], *, abandoned: bool = False) -> Iterator[Conversation]:
        """Yields the segments with new entries of a path to a leaf; `abandoned`: not current."""
        logged = [self.nodes.get(name) or self.holes[name] for name in names]
        path, self.moved = in_order(logged)  # prompts behind what did not see them
        self.moved |= {node.id for node in path if _is_unlike_log(node.entry)}
        starts = (
            at
            for at, node in enumerate(path)
            if at and (node.entry.get("type") in ("compaction", _RESET))
        )
        for start, end in pairwise([0, *starts, len(path)]):
            segment = path[start:end]
            if start:
                segment = [segment[0], *kept(path[:start], segment[0], self.places), *segment[1:]]
            problems: list[Problem] = []
            if abandoned:
                problems.append(_problem("rewound", path[-1], "the session went on elsewhere"))
            lost = as_str(segment[0].entry.get("firstKeptEntryId"))
            index = segment[0].entry.get("firstKeptEntryIndex")
            is_cut = start > 0 and (lost not in {"", *self.nodes} or index in self.lost)
            for stretch in _find_stretches(segment):
                yield from self._stretch(stretch, problems, abandoned=abandoned, is_cut=is_cut)

    def _stretch(
        self,
        stretch: _PathStretch,
        problems: Sequence[Problem],
        *,
        abandoned: bool,
        is_cut: bool,
    ) -> Iterator[Conversation]:
        """Yields the conversation of a stretch, if it contains anything new.

        Before it, yields one for each new aborted answer. `abandoned`: it is not the current path.
        `is_cut`: the entry before the first is not in the file.
        """
        nodes = stretch.nodes
        fresh = [node for node in nodes if node.id not in self.emitted]
        if abandoned and not any(node.answers for node in fresh):
            return
        messages: list[Message] = []
        held: list[Message] = []
        missing = base = self._missing(stretch)
        missing |= {"history"} if is_cut else frozenset()
        model = self.model
        changes = Counter({"tools_added_later": int(bool(stretch.early))})
        has_new = False
        for node in nodes:
            if node.role == "system":
                patch = (
                    _patch_message(as_dict(node.entry.get("message")))
                    if stretch.in_place and messages
                    else None
                )
                if patch is not None:
                    missing |= {"history"}  # whether it was sent at its place is not logged
                    held.append(patch)
                continue
            message = self._message(node, stretch, changes)
            if message is None or not message.parts:
                continue
            if message.role != "tool":  # a patch among results is sent after them
                messages, held = [*messages, *held], []
            is_other = node.id in self.moved or node.id in self.holes
            missing |= {"history"} if is_other else frozenset()
            model = name_or_none(as_dict(node.entry.get("message")).get("model")) or model
            if node.is_aborted:
                changes["aborted_turn"] += 1
                missing |= self._uncertain()
                if node.id not in self.emitted:
                    problem = _problem("aborted", node, "the answer was aborted or failed")
                    cut = [*messages, message]
                    ends = (nodes[0], node)
                    yield self._conversation(cut, ends, model, [problem], stretch, branch=True)
                continue
            if node.answers:
                is_edited = stretch.edits.get(node.id) is not None
                missing |= {"reminders"} if node.id in self.injects else frozenset()
                lacks = missing | ({"tools"} if node.id in stretch.early else frozenset())
                message = replace(
                    message,
                    untrained="edited" if is_edited else self._code(node),
                    context=Context.lacking(lacks) if lacks != base else None,
                )
                missing |= {"reasoning"} if _hides_reasoning(node.entry) else frozenset()
            messages.append(message)
            new = node.id not in self.emitted and node.entry.get("type") != "compaction"
            has_new = has_new or (new and (node.answers or not abandoned))
        self.emitted.update(node.id for node in fresh)
        if not has_new:
            self.segments.records += len(fresh)
            return
        messages, changes["result_supplied"] = self._with_results(messages, base)
        ends = (nodes[0], nodes[-1])
        conversation = self._conversation(
            messages, ends, model, problems, stretch, branch=abandoned
        )
        yield replace(conversation, records=len(fresh), changes=dict(+changes))

    def _message(self, node: Node, stretch: _PathStretch, changes: Counter[str]) -> Message | None:
        """Returns the message of an entry as the stretch has it; counts one that was taken out."""
        if node.id in self.holes:
            return lost_message()
        if node.id in self.unknown:
            return unknown_message(node.role or node.entry.get("type"))
        if node.id not in stretch.edits or node.is_aborted:
            return _entry_message(node.entry, node.id)
        changes["context_edited"] += 1
        content = as_dict(stretch.edits[node.id]).get("content")
        return None if content is None else _entry_message(edited(node.entry, content), node.id)

    def _with_results(
        self, messages: Sequence[Message], base: frozenset[str]
    ) -> tuple[list[Message], int]:
        """Returns the messages with the results that the program supplied, and their number."""
        answered, supplied = supply_results(messages, no_result)
        uncertain = self._uncertain()
        if not supplied or not uncertain:
            return answered, supplied
        logged = set(map(id, messages))
        first = next(at for at, message in enumerate(answered) if id(message) not in logged)
        for at, message in enumerate(answered[first:], start=first):
            if message.role == "assistant":
                known = message.context.missing if message.context else base
                answered[at] = replace(message, context=Context.lacking(uncertain.union(known)))
        return answered, supplied

    def _missing(self, stretch: _PathStretch) -> frozenset[str]:
        if stretch.system is None:
            return _MISSING - {"system"} if self.prompt else _MISSING
        return frozenset() if stretch.exact_tools else frozenset({"tools"})

    def _code(self, node: Node) -> str | None:
        if as_str(as_dict(node.entry.get("message")).get("model")) in _MIRRORS:
            return "inserted"
        copied = bool(self.copied) and _answer_digest(node.entry) in self.copied
        return REPEAT if node.id in self.emitted or copied else None

    def _uncertain(self) -> frozenset[str]:
        return frozenset() if self.version == _VERSION else frozenset({"history"})

    def _conversation(
        self,
        messages: Sequence[Message],
        ends: tuple[Node, Node],
        model: str | None,
        problems: Sequence[Problem],
        stretch: _PathStretch,
        *,
        branch: bool,
    ) -> Conversation:
        prompt = stretch.system or self.prompt
        system = [Message("system", (Text(prompt),))] if prompt else []
        sent = [*system, *_image_messages(messages, stretch.api)]
        return Conversation(
            id=self.segments.next_branch() if branch else self.segments.next_name(),
            record=span(ends[0].where, ends[1].where),
            messages=tuple(with_session_keys(NAME, sent, self.scope)),
            tools=None if stretch.system is None else tuple(stretch.tools.values()),
            model=model,
            problems=tuple(problems),
            folder=self.folder,
            context=Context.lacking(self._missing(stretch)),
        )


def _problem(code: str, node: Node, detail: str) -> Problem:
    return Problem(code, node.where, detail, records=0)


READER = declared(NAME, recognise=_recognise, read=read)
