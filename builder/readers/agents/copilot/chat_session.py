"""Converts a chat session of VS Code to conversations. Source: docs/formats/vscode-copilot.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.conversation import (
    Content,
    Context,
    Event,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import json_type
from builder.readers.toolkit.chat_messages import media_of
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    model_of,
    name_of,
    name_or_none,
)

_CUT = "[JustRide: value truncated for persistence"
"""The beginning of what VS Code stores in place of a value that is too long."""
_CANCELLED = 2
_MAX_DEPTH = 100


@dataclass(slots=True)
class ChatSession:
    """The requests of a session, in order. `is_damaged`: entries of its log could not be read."""

    history: SessionHistory
    is_damaged: bool = False
    has_gap: bool = False
    unseen: bool = False
    version: str | None = None
    rounds: dict[str, HistoryEntry] = field(default_factory=dict)
    """The last message of each round, by the round's id."""

    def add(self, request: dict[str, Json], where: str) -> None:
        """Adds a request: the user's message, and the rounds of the model."""
        before = len(self.history.entries)
        agent = as_dict(request.get("agent"))
        self.version = name_or_none(agent.get("extensionVersion")) or self.version
        result = as_dict(request.get("result"))
        metadata = as_dict(result.get("metadata"))
        for message in self._prompt(request, metadata):
            self.history.append(message, where)
        model = name_of(metadata, "resolvedModel") or model_of(request, "modelId")
        head = RequestHead(model=(model or "").removeprefix("copilot/") or None)
        rounds = as_dicts(metadata.get("toolCallRounds"))
        summaries = {
            as_str(item.get("toolCallRoundId")): as_str(item.get("text"))
            for item in [*as_dicts(metadata.get("summaries")), as_dict(metadata.get("summary"))]
        }
        results = as_dict(metadata.get("toolCallResults"))
        own = {as_str(item.get("id")) for item in rounds}
        for name, text in summaries.items():
            if text and name not in own:  # of rounds of earlier requests, made for this one
                self._summarise(name, text, where)
                before = 0
        for item in rounds:
            name = as_str(item.get("id"))
            self._round(item, results, head, where)
            self.rounds[name] = self.history.entries[-1]
            if text := as_str(item.get("summary")) or summaries.get(name, ""):
                self._summarise(name, text, where)
                before = 0
        if not rounds:
            self._shown(request, head, where)
        if request.get("shouldBeRemovedOnSend") or request.get("isHidden") is True:
            self.history.rewind(before)

    def conversations(self, records: int) -> Iterator[Event]:
        """Yields the conversations of the session."""
        return self.history.conversations(records, version=self.version)

    def _prompt(self, request: dict[str, Json], metadata: dict[str, Json]) -> Iterator[Message]:
        if shared := _rendered(metadata.get("renderedGlobalContext"), harness=True):
            yield Message("user", shared)
        if sent := _rendered(metadata.get("renderedUserMessage")):
            yield Message("user", sent)
            return
        self.unseen = True  # the context around the typed text is not in the log
        if text := as_str(request, "message", "text"):
            yield Message("user", (Text(text),))

    def _round(
        self,
        item: dict[str, Json],
        results: dict[str, Json],
        head: RequestHead,
        where: str,
    ) -> None:
        parts = list(_answer_parts(item))
        if not parts:
            return
        name = name_or_none(item.get("id"))
        message = Message("assistant", tuple(parts), name, context=self._context())
        self.history.append(message, where, head)
        for call in as_dicts(item.get("toolCalls")):
            call_id = as_str(call.get("id"))
            if call_id in results:
                content = tuple(_result_parts(results[call_id]))
                cut = any(isinstance(p, Text) and p.text.startswith(_CUT) for p in content)
                self.has_gap = self.has_gap or cut
                part = ToolResult(content, _own_id(call_id), name_or_none(call.get("name")))
                self.history.append(Message("tool", (part,)), where)

    def _summarise(self, name: str, text: str, where: str) -> None:
        """Replaces the messages up to a round's last one by their summary."""
        self.has_gap = True  # how the summary is worded in the request is not logged
        entries = self.history.entries
        at = next((at for at, one in enumerate(entries) if one is self.rounds.get(name)), None)
        if at is None:
            return
        self.history.replace()
        self.history.append(Message("user", (Text(text, harness=True),)), where)
        self.history.entries += entries[at + 1 :]

    def _shown(self, request: dict[str, Json], head: RequestHead, where: str) -> None:
        """Adds the answer as the interface displays it, of a request without its rounds."""
        texts: list[str] = []
        is_lossy = False
        for item in as_dicts(request.get("response")):
            kind = item.get("kind")
            value = item.get("value")
            if kind == "markdownContent":  # of versions before 2025
                kind, value = None, item.get("content")
            if kind is None and isinstance(value, dict):
                value = value.get("value")
            if kind is None and isinstance(value, str):
                texts.append(value)
            elif kind == "inlineReference":
                texts.append(_reference(item))
            elif as_str(kind) not in _SCREEN:
                is_lossy = True
        text = "".join(texts).strip()
        if not text and not is_lossy:
            return
        parts: list[Part] = [Text(text)] if text else []
        if is_lossy:  # calls without their arguments, edits in place of text
            parts.append(Unparsed("", "bad_call"))
        state = as_dict(request.get("modelState")).get("value")
        stopped = request.get("isCanceled") is True or state == _CANCELLED
        failed = bool(as_dict(request.get("result")).get("errorDetails"))
        code = "aborted" if stopped or failed else None
        message = Message("assistant", tuple(parts), untrained=code, context=self._context())
        self.history.append(message, where, head)

    def _context(self) -> Context:
        missing = ["system", "tools"]
        missing += ["history"] if self.has_gap or self.is_damaged else []
        missing += ["reminders"] if self.unseen else []
        return Context.lacking(missing)


_SCREEN = frozenset({
    "confirmation", "elicitation", "extensions", "markdownVuln", "mcpServersStarting", "move",
    "progressMessage", "progressTask", "progressTaskSerialized", "pullRequest", "thinking",
    "treeData", "undoStop", "warning",
})  # fmt: skip
"""Kinds of parts of a displayed answer that stand for none of the model's text."""


def _reference(item: dict[str, Json]) -> str:
    """Returns the text that stands for a reference in a displayed answer."""
    target = as_dict(item.get("inlineReference"))
    name = name_of(item, "name") or name_of(target, "name")
    path = as_str(target.get("path")) or as_str(target, "uri", "path")
    return f"`{name or path.rpartition('/')[2]}`"


def _own_id(call_id: str) -> str | None:
    """Returns a call's id without the suffix that the client adds."""
    return call_id.partition("__vscode-")[0] or None


def _rendered(value: Json, *, harness: bool = False) -> tuple[Part, ...]:
    """Returns the parts of a message that was logged as sent; cache markers are none."""
    parts: list[Part] = []
    texts: list[str] = []
    for item in as_dicts(value):
        match item.get("type"):
            case 1 if isinstance(item.get("text"), str):
                texts.append(as_str(item["text"]))
            case 0:
                parts.append(media_of("image/"))
            case 4:
                parts.append(media_of(as_str(item, "documentData", "mediaType")))
            case 3:
                pass
            case kind:
                parts.append(unknown_part(str(kind)))
    text = "".join(texts)
    return (Text(text, harness=harness), *parts) if text else tuple(parts)


def _answer_parts(item: dict[str, Json]) -> Iterator[Part]:
    thinking = as_dict(item.get("thinking"))
    thought = thinking.get("text")
    texts = [as_str(one) for one in thought] if isinstance(thought, list) else [as_str(thought)]
    if "".join(texts):
        yield Reasoning("".join(texts))
    text = item.get("response")
    if isinstance(text, str) and text.startswith(_CUT):
        yield Unparsed(text, "truncated_answer")
    elif isinstance(text, str) and text.strip():
        yield Text(text)
    elif isinstance(text, list):
        yield Text("".join(map(as_str, text)))
    for call in as_dicts(item.get("toolCalls")):
        call_id = _own_id(as_str(call.get("id")))
        yield ToolCall(as_str(call.get("name")), call.get("arguments"), call_id)


def _result_parts(value: Json) -> Iterator[Content]:
    """Yields the parts of a result: text, the text of a tree of the prompt, media."""
    if isinstance(value, str):
        yield Text(value)
        return
    for part in as_list(value, "content"):
        item = as_dict(part)
        inner = item.get("value")
        if isinstance(inner, str):
            yield Text(inner)
        elif isinstance(inner, dict) and "node" in inner:
            yield Text(_tree_text(inner["node"]))
        elif name_of(item, "mimeType") or name_of(as_dict(inner), "mimeType"):
            yield media_of(name_of(item, "mimeType") or as_str(inner, "mimeType"))
        else:
            yield unknown_part(str(item.get("$mid", json_type(part))))


def _tree_text(node: Json) -> str:
    """Returns the text of a tree as the client renders it for the model.

    A text that asks for it, or that is the first of its parent and follows no other text, begins
    a line of its own. The whole is trimmed (vscode-prompt-tsx, materialized.ts, and a trace).
    """
    text = ""
    for piece, on_own_line in _texts(node, is_sibling=False):
        if on_own_line and text and not text.endswith("\n"):
            text += "\n"
        text += piece
    return text.strip()


def _texts(node: Json, *, is_sibling: bool, depth: int = 0) -> Iterator[tuple[str, bool]]:
    """Yields the texts below a node, and whether each begins a line of its own."""
    for at, child in enumerate(as_dicts(node, "children")):
        if child.get("type") == 2:
            asked = child.get("lineBreakBefore") is True
            yield as_str(child.get("text")), asked or (at == 0 and not is_sibling)
            is_sibling = True
        elif depth < _MAX_DEPTH:
            yield from _texts(child, is_sibling=is_sibling, depth=depth + 1)
            is_sibling = False
