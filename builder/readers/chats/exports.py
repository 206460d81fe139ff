"""Reads exports of chats: Claude.ai, DeepSeek, Grok, LibreChat. Source: docs/formats/.

A chat is a record: messages that form a tree. Calls and results may be inside one answer, which is
cut into turns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from builder.conversation import (
    Content,
    Context,
    Data,
    Event,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    unknown_part,
)
from builder.readers import declared
from builder.readers.toolkit.chat_messages import content, media_of
from builder.readers.toolkit.history import Chat, ChatNode, chat_conversations, in_order, paths
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    flag_or_none,
    json_in_text,
    model_of,
    name_of,
    name_or_none,
)
from builder.readers.toolkit.rows import read_objects
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted
from builder.readers.traces.parts import read_part
from builder.sources.source import Source

_BASE = ("system", "tools")
"""What no export has."""


@dataclass(frozen=True, slots=True)
class _Tree:
    """A chat: its name, its messages by id, the current one; the rest as in `Chat`."""

    name: str
    nodes: dict[str, ChatNode]
    current: str | None
    model: str | None = None
    system: str = ""
    changes: Mapping[str, int] | None = None


_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic")


def _file_media(file: dict[str, Json]) -> Media:
    """Returns the placeholder for a file with a `file_name`, whose content is not exported."""
    is_image = as_str(file.get("file_name")).lower().endswith(_IMAGES)
    return Media("image" if is_image else "file")


def _newest_leaf(nodes: Mapping[str, ChatNode], times: Mapping[str, str]) -> str | None:
    """Returns the leaf that was written last (`times`, else the order), preferably an answer."""
    order = {name: at for at, name in enumerate(nodes)}

    def rank(name: str) -> tuple[bool, str, int]:
        answers = any(m.role == "assistant" and not m.untrained for m in nodes[name].messages)
        return answers, times.get(name, ""), order[name]

    return max((path[-1] for path, _ in paths(nodes, None)), key=rank, default=None)


def turns(
    pieces: Iterable[Part],
    context: Context | None,
    untrained: str | None = None,
    model: str | None = None,
) -> Iterator[Message]:
    """Yields the turns of an answer: text, thoughts and calls, then their results, and so on.

    Calls without text or a result between them are parallel. A result without an id belongs to the
    latest open call with its name, else to the oldest open one; results follow in the order of
    their calls.
    """
    answer = Message("assistant", (), untrained=untrained, context=context, model=model)
    parts: list[Part] = []
    answered: list[tuple[int, ToolResult]] = []
    for piece in pieces:
        if isinstance(piece, ToolResult):
            answered.append((_asked(parts, answered, piece), piece))
            continue
        if answered:
            yield from _turn(answer, parts, answered)
            parts, answered = [], []
        parts.append(piece)
    yield from _turn(answer, parts, answered)


def _asked(parts: list[Part], answered: list[tuple[int, ToolResult]], result: ToolResult) -> int:
    """Returns the position of the call that a result answers; that of none is behind all."""
    taken = {at for at, _ in answered}
    calls = [(at, one) for at, one in enumerate(parts) if isinstance(one, ToolCall)]
    free = [(at, call) for at, call in calls if at not in taken]
    if result.call_id is not None:
        same = [at for at, call in free if call.id == result.call_id]
        if same:
            return same[0]
    same = [at for at, call in free if call.name == result.name and call.id is None]
    if same:
        return same[-1]
    return free[0][0] if free and result.call_id is None else len(parts)


def _turn(
    answer: Message, parts: list[Part], answered: list[tuple[int, ToolResult]]
) -> Iterator[Message]:
    if parts:
        yield replace(answer, parts=tuple(parts))
    for _, result in sorted(answered, key=lambda item: item[0]):
        yield Message("tool", (result,))


# -- Claude.ai ------------------------------------------------------------------------------------

_SENDERS = frozenset({"human", "assistant"})
_UNSHOWN = re.compile(
    r"(?:```\s*)?(?:This block is not supported on your current device yet\.|"
    r"Viewing artifacts created via the Analysis Tool web feature preview isn.t yet supported on "
    r"mobile\.)(?:\s*```)?"
)
"""What the export writes in place of a block, in the text of an answer: no model's words."""
_FILE_KEYS = ("file_path", "name", "mime_type")
_SCREEN = frozenset({"token_budget", "flag"})


def _is_claude(value: dict[str, Json]) -> bool:
    messages = as_list(value.get("chat_messages"))
    is_named = "uuid" in value and "chat_messages" in value
    return is_named or any(as_dict(one).get("sender") in _SENDERS for one in messages)


def _claude_chat(where: str, value: dict[str, Json]) -> _Tree:
    items = as_dicts(value.get("chat_messages"))
    parents: dict[str, str | None] = {}
    messages_of: dict[str, tuple[Message, ...]] = {}
    is_tree = any(name_or_none(item.get("parent_message_uuid")) for item in items)
    missing = {*_BASE}
    last: str | None = None
    sender = ""
    for at, item in enumerate(items):
        last = as_str(item.get("uuid")) or str(at)
        if not is_tree and sender and item.get("sender") == sender:
            missing.add("history")  # possibly an edit or another answer, which is not marked
        sender = as_str(item.get("sender"))
        parents[last] = name_or_none(item.get("parent_message_uuid"))
        messages_of[last] = tuple(_messages(item, missing))
    nodes = in_order(messages_of)
    if is_tree:
        nodes = {name: ChatNode(parents[name], messages) for name, messages in messages_of.items()}
    current = name_or_none(value.get("current_leaf_message_uuid"))
    name = name_of(value, "uuid", "id") or where
    return _Tree(name, nodes, current if current in nodes else last, name_of(value, "model"))


def _messages(item: dict[str, Json], missing: set[str]) -> Iterator[Message]:
    """Yields the messages of a message of the export; `missing` is extended for later answers."""
    blocks = as_dicts(item.get("content"))
    text = as_str(item.get("text"))
    if not blocks and text.strip():
        blocks = [{"type": "text", "text": text}]
    if item.get("sender") != "assistant":
        yield from _question(item, blocks)
        return
    pieces = list(_pieces(blocks))
    yield from turns(pieces, Context.lacking(missing), cut_code(item))
    if any(block.get("type") == "thinking" and _is_cut(block) for block in blocks):
        missing.add("reasoning")
    results = (one for one in pieces if isinstance(one, ToolResult))
    if any(isinstance(part, Data) for one in results for part in one.content):
        missing.add("history")


def _is_cut(block: dict[str, Json]) -> bool:
    return block.get("cut_off") is True or block.get("truncated") is True


def _question(item: dict[str, Json], blocks: list[dict[str, Json]]) -> Iterator[Message]:
    parts: list[Part] = []
    for attachment in as_dicts(item.get("attachments")):
        if text := as_str(attachment.get("extracted_content")):
            parts.append(Text(text, harness=True))
        else:
            parts.append(media_of(as_str(attachment.get("file_type"))))
    parts += map(_file_media, as_dicts(item.get("files")))
    for block in blocks:
        kind = as_str(block.get("type"))
        text = as_str(block.get("text"))
        if kind in ("text", "voice_note"):
            parts += _text(text)
        elif kind == "image":
            parts.append(Media("image"))
        elif kind not in _SCREEN:
            parts.append(unknown_part(kind))
    if parts:
        yield Message("user", tuple(parts))


def _pieces(blocks: list[dict[str, Json]]) -> Iterator[Part]:
    """Yields the parts of an answer, results among them."""
    for block in blocks:
        match as_str(block.get("type")):
            case "text":
                yield from _text(as_str(block.get("text")))
            case "thinking":
                if not _is_cut(block) and as_str(block.get("thinking")).strip():
                    yield Reasoning(as_str(block["thinking"]))
            case "tool_result":
                yield ToolResult(
                    tuple(_result(block.get("content"))),
                    name_or_none(block.get("tool_use_id")),
                    name_or_none(block.get("name")),
                    is_error=flag_or_none(block.get("is_error")),
                )
            case kind if kind not in _SCREEN:
                yield from read_part(block)


def _text(text: str) -> Iterator[Part]:
    """Yields a text, and an unknown part for each block that the export did not show in it."""
    for at, piece in enumerate(_UNSHOWN.split(text)):
        if at:
            yield unknown_part("unsupported_block")
        if piece.strip():
            yield Text(piece)


def _result(value: Json) -> Iterator[Content]:
    if isinstance(value, str):
        yield Text(value)
        return
    for part in as_dicts(value):
        kind = part.get("type")
        if kind == "text":
            yield Text(as_str(part.get("text")))
        elif kind == "image":
            yield Media("image")
        elif kind == "knowledge":
            yield Data({key: part[key] for key in ("title", "url", "text") if part.get(key)})
        elif name_or_none(part.get("file_path")):
            yield Data({key: part[key] for key in _FILE_KEYS if key in part})
        else:
            yield unknown_part(as_str(kind))


# -- DeepSeek: a mapping like that of ChatGPT, or the list that the interface gets ----------------

_SEARCHES = frozenset({"SEARCH", "TOOL_SEARCH", "TOOL_OPEN", "TOOL_FIND", "READ_LINK"})
_ANSWERS = frozenset({"RESPONSE", "THINK", "TEMPLATE_RESPONSE", "TIP"}) | _SEARCHES
_NOTICES = frozenset(
    {
        "服务器繁忙，请稍后再试。",  # noqa: RUF001 - the service's own words
        "The server is busy. Please try again later.",
    }
)
"""Texts that the service shows in place of an answer."""


def _mapping(value: dict[str, Json]) -> dict[str, Json]:
    """Returns the nodes of an exported chat; {} if it is none."""
    mapping = as_dict(value.get("mapping"))
    messages = (as_dict(node, "message") for node in mapping.values())
    is_own = "inserted_at" in value or any("fragments" in message for message in messages)
    return mapping if is_own else {}


def _listed(value: dict[str, Json]) -> tuple[dict[str, Json], list[dict[str, Json]]]:
    """Returns the session and the messages of a response of the API, with or without its wrap."""
    body = as_dict(value, "data", "biz_data") or value
    session = as_dict(body.get("chat_session"))
    messages = as_dicts(body.get("chat_messages"))
    return session, messages if any("parent_id" in one for one in messages) else []


def _deepseek_chat(where: str, value: dict[str, Json]) -> _Tree:
    session, listed = _listed(value)
    items: dict[str, tuple[str | None, dict[str, Json]]] = {}
    for at, message in enumerate(listed):
        name = _id(message.get("message_id")) or f"#{at}"
        items[name] = (_id(message.get("parent_id")), message)
    if not listed:
        session = value
        for name, node in as_dict(value.get("mapping")).items():
            items[name] = (name_or_none(as_dict(node).get("parent")), as_dict(node, "message"))
    reading = _Reading()
    nodes = {
        name: ChatNode(parent, tuple(reading.messages(message)))
        for name, (parent, message) in items.items()
    }
    current = _id(session.get("current_message_id"))
    times = {name: as_str(message.get("inserted_at")) for name, (_, message) in items.items()}
    chosen = current if current in nodes else _newest_leaf(nodes, times)
    changes = dict(sorted(reading.changes.items()))
    return _Tree(name_of(session, "id") or where, nodes, chosen, changes=changes)


def _id(value: Json) -> str | None:
    return None if value is None or isinstance(value, bool) else str(value)[:200]


@dataclass(slots=True)
class _Reading:
    """Converts messages; counts what is left out of their text, and what later answers lack."""

    changes: Counter[str] = field(default_factory=Counter)
    missing: set[str] = field(default_factory=lambda: {*_BASE})

    def messages(self, message: dict[str, Json]) -> Iterator[Message]:
        """Yields the message of a node; nothing if it has no content."""
        fragments = as_dicts(message.get("fragments")) or _older(message)
        kinds = {as_str(one.get("type")) for one in fragments}
        default = "assistant" if kinds & _ANSWERS else "user"
        role = as_str(message.get("role")).lower()[:40] or default
        parts = tuple(self._parts(message, fragments))
        if parts and role != "assistant":
            yield Message(role, parts)
        elif parts:
            yield Message(
                role,
                parts,
                model=name_of(message, "model"),
                context=Context.lacking(self.missing),
                untrained=_untrained(message, kinds, parts),
            )
        if kinds & _SEARCHES:
            self.missing.add("history")

    def _parts(self, message: dict[str, Json], fragments: list[dict[str, Json]]) -> Iterator[Part]:
        yield from map(_file_media, as_dicts(message.get("files")))
        for fragment in fragments:
            kind, text = as_str(fragment.get("type")), as_str(fragment.get("content"))
            if kind in ("REQUEST", "RESPONSE", "TEMPLATE_RESPONSE"):
                yield from [Text(text)] if text.strip() else []
            elif kind == "THINK":
                yield from [Reasoning(text)] if text.strip() else []
            elif kind == "FILE":
                yield from map(_file_media, as_dicts(fragment.get("files")) or [fragment])
            elif kind in _SEARCHES:
                self.changes["search_fragment"] += 1
            elif kind != "TIP":
                yield unknown_part(kind)


def _older(message: dict[str, Json]) -> list[dict[str, Json]]:
    """Returns the fragments of a message of the API's older form, whose texts are keys."""
    is_user = as_str(message.get("role")).lower() == "user"
    fragments: list[dict[str, Json]] = []
    if message.get("search_results"):
        fragments.append({"type": "SEARCH"})
    for key, kind in (("thinking_content", "THINK"), ("content", "RESPONSE")):
        if isinstance(message.get(key), str):
            fragments.append({"type": "REQUEST" if is_user else kind, "content": message[key]})
    return fragments


def _untrained(message: dict[str, Json], kinds: set[str], parts: tuple[Part, ...]) -> str | None:
    """Returns why an answer is no target, None if it is one."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    if "TEMPLATE_RESPONSE" in kinds or any(text.strip() in _NOTICES for text in texts):
        return "inserted"
    if not texts or as_str(message.get("status")) not in ("", "FINISHED"):
        return "aborted"
    return "server_tool" if kinds & _SEARCHES else None


# -- Grok: responses that name the one before -----------------------------------------------------

_SEARCHED = (
    "web_search_results", "cited_web_search_results", "xpost_ids", "webpage_urls", "steps",
    "generated_image_urls", "image_edit_uris", "agent_thinking_traces", "tool_responses",
)  # fmt: skip
"""What the service found or made for an answer; none shows the call and what the model got."""
_TOOL_MARK = "<xai:"
_KEYS = MESSAGE_KEYS | {*_SEARCHED} | {
    "_id", "message", "sender", "create_time", "parent_response_id", "conversation_id",
    "thinking_trace", "thinking_start_time", "thinking_end_time", "file_attachments", "query",
    "query_type", "card_attachments_json", "media_types", "manual", "partial", "shared", "error",
    "mode", "request_metadata", "ui_layout",
}  # fmt: skip


def _responses(chat: dict[str, Json]) -> list[dict[str, Json]]:
    """Returns the messages of an exported chat; [] if it is none."""
    if not isinstance(chat.get("conversation"), dict):
        return []
    responses = [as_dict(one.get("response")) for one in as_dicts(chat.get("responses"))]
    are_messages = all("sender" in one and "message" in one for one in responses)
    return responses if are_messages else []


def _grok_chat(where: str, value: dict[str, Json]) -> _Tree:
    missing = {*_BASE}
    nodes: dict[str, ChatNode] = {}
    for at, item in enumerate(_responses(value)):
        parent = name_or_none(item.get("parent_response_id"))
        name = name_or_none(item.get("_id")) or f"#{at}"
        nodes[name] = ChatNode(parent, tuple(_grok_messages(item, missing)))
    chat_id = name_of(as_dict(value.get("conversation")), "id") or where
    return _Tree(chat_id, nodes, _newest_leaf(nodes, {}))


def _grok_messages(item: dict[str, Json], missing: set[str]) -> Iterator[Message]:
    """Yields the message of a response; adds what later answers lack to `missing`."""
    text, thought = as_str(item.get("message")), as_str(item.get("thinking_trace"))
    files: list[Part] = [Media("file") for _ in as_list(item.get("file_attachments"))]
    words: list[Part] = [Text(text)] if text.strip() else []
    if as_str(item.get("sender")).lower() in ("human", "user"):
        if files or words:
            yield from noted([Message("user", (*files, *words))], item, _KEYS)
        return
    searched = _TOOL_MARK in thought or _TOOL_MARK in text or any(map(item.get, _SEARCHED))
    thoughts: list[Part] = [Reasoning(thought)] if thought.strip() and not searched else []
    code = "server_tool" if searched else None
    if item.get("error") or item.get("partial") is True or not words:
        code = "aborted"
    if parts := (*thoughts, *words, *files):
        context = Context.lacking(missing)
        answer = Message("assistant", parts, None, code, context, name_of(item, "model"))
        yield from noted([answer], item, _KEYS)
    if searched:
        missing.add("history")


# -- LibreChat ------------------------------------------------------------------------------------


def _is_librechat(value: dict[str, Json]) -> bool:
    found = next(iter(_messages_of(value).values()), {})
    return "conversationId" in value and {"messageId", "isCreatedByUser"} <= found.keys()


def _messages_of(value: dict[str, Json]) -> dict[str, dict[str, Json]]:
    """Returns the messages by id, of a tree with `children` or of a list, in order."""
    found: dict[str, dict[str, Json]] = {}
    waiting = as_dicts(value.get("messagesTree")) or as_dicts(value.get("messages"))
    while waiting:
        message = waiting.pop(0)
        found[as_str(message.get("messageId")) or f"#{len(found)}"] = message
        waiting = [*as_dicts(message.get("children")), *waiting]
    return found


def _librechat_chat(where: str, value: dict[str, Json]) -> _Tree:
    messages, options = _messages_of(value), as_dict(value.get("options"))
    system = name_of(options, "promptPrefix", "system", "instructions") or ""
    context = Context.lacking(["tools"] if system else _BASE)
    nodes = {
        name: ChatNode(
            name_or_none(item.get("parentMessageId")), tuple(_librechat_messages(item, context))
        )
        for name, item in messages.items()
    }
    times = {name: as_str(item.get("createdAt")) for name, item in messages.items()}
    current, model = _newest_leaf(nodes, times), model_of(options, "model")
    return _Tree(as_str(value.get("conversationId")) or where, nodes, current, model, system)


def _librechat_messages(item: dict[str, Json], context: Context) -> Iterator[Message]:
    """Yields the messages of a logged message; an error that the screen shows is none."""
    pieces = [part for one in as_dicts(item.get("content")) for part in _librechat_pieces(one)]
    if not pieces and item.get("error") is not True:
        pieces = list(content(item.get("text")))
    files: list[Part] = [media_of(as_str(file.get("type"))) for file in as_dicts(item.get("files"))]
    if item.get("isCreatedByUser") is True:
        yield from [Message("user", (*files, *pieces))] if files or pieces else []
        return
    code = "aborted" if item.get("error") is True else cut_code(item)
    code = "truncated" if item.get("unfinished") is True else code
    code = "edited" if item.get("isEdited") is True else code
    yield from turns(pieces, context, code, name_of(item, "model"))


def _librechat_pieces(part: dict[str, Json]) -> Iterator[Part]:
    kind = as_str(part.get("type"))
    text = as_str(part.get(kind)) or as_str(part, kind, "value")
    call = as_dict(part.get("tool_call"))
    if kind == "text":
        yield from content(text)
    elif kind == "think":
        yield from [Reasoning(text)] if text else []
    elif kind == "tool_call":
        function = as_dict(call.get("function")) or call
        call_id, name = name_or_none(call.get("id")), as_str(function.get("name"))
        arguments = function.get("args", function.get("arguments"))
        yield ToolCall(name, arguments, call_id)
        output = function.get("output")
        if isinstance(output, str) and (output or call.get("progress") == 1):
            yield ToolResult((Text(output),), call_id, name, is_error=_failed(output))
    elif kind.startswith("image"):
        yield media_of("image/")
    elif kind not in ("error", "agent_update"):
        yield unknown_part(kind)


def _failed(output: str) -> bool | None:
    value = json_in_text(output)
    return True if isinstance(value, dict) and value.get("error") else None


# -- readers --------------------------------------------------------------------------------------


def _recognise(
    is_chat: Callable[[dict[str, Json]], object], sign: str, source: Source
) -> str | None:
    return sign if any(map(is_chat, source.peek.objects)) else None


def _read(
    format_name: str, tree: Callable[[str, dict[str, Json]], _Tree], source: Source
) -> Iterator[Event]:
    def conversation(where: str, value: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
        found = tree(where, value)
        chat = Chat(
            format_name=format_name,
            scope=f"{source.name}/{found.name}",
            name=found.name,
            where=where,
            system=found.system,
            model=found.model,
            context=Context.lacking(_BASE[bool(found.system) :]),
            changes=found.changes,
        )
        yield from chat_conversations(chat, found.nodes, found.current, names)

    return read_objects(source, conversation, "a conversation that is ")


READERS = tuple(
    declared(name, recognise=partial(_recognise, is_chat, sign), read=partial(_read, name, tree))
    for name, is_chat, sign, tree in (
        ("claude-ai-export", _is_claude, "conversations with chat_messages", _claude_chat),
        (
            "deepseek-export",
            lambda one: _mapping(one) or _listed(one)[1],
            "messages of fragments, or with parent_id",
            _deepseek_chat,
        ),
        ("grok-export", _responses, "conversations with responses of senders", _grok_chat),
        ("librechat", _is_librechat, "messages with messageId, isCreatedByUser", _librechat_chat),
    )
)
