"""Finds the context of each answer of a session: prompt, tools and edits in effect at its place.

From 0.86 on, the program logs its system prompt and tools as system messages that are replayed in
order, and edits of earlier messages as entries of their own (docs/context.md, "What agents send").
A stretch is a run of answers in which each context extends the one before: another prompt, a tool
that was removed or changed, and an edit of something that an answer had in its context begin a new
stretch, in which the earlier answers are repeats.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str

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
class Prompt:
    """The system prompt and tools in effect; `is_logged`: the log has any."""

    texts: tuple[str, ...] = ()
    sections: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, Json] = field(default_factory=dict)
    is_logged: bool = False

    def after(self, message: Entry) -> Prompt:
        """Returns the prompt after a system message: sections of null and removed tools are gone.

        A replaced section keeps its place, a new one comes last.
        """
        text = plain_text(message.get("content"))
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
        return Prompt((*self.texts, text) if text else self.texts, sections, tools, True)

    @property
    def text(self) -> str:
        """The system prompt as the program sends it."""
        return "\n\n".join(filter(None, ["\n\n".join(self.texts), *self.sections.values()]))


@dataclass(frozen=True, slots=True)
class PathStretch:
    """The entries of a stretch, and the context of its last answer.

    system       the system text of the request; None: the log has none
    tools        the tools by name
    in_place     later system messages were sent at their place
    edits        by the id of the entry: its new content, or None if it was taken out
    tools_added  whether tools were added within the stretch
    api          the API that the request used, as logged, or ""
    exact_tools  the tools were sent as they are logged
    """

    nodes: tuple[Node, ...] = ()
    system: str | None = None
    tools: Mapping[str, Json] = field(default_factory=dict)
    in_place: bool = False
    edits: Mapping[str, Json] = field(default_factory=dict)
    tools_added: bool = False
    api: str = ""
    exact_tools: bool = True


def find_stretches(nodes: Sequence[Node]) -> list[PathStretch]:
    """Returns the stretches of a segment in order, at least one; the last has all its entries."""
    prompt = Prompt()
    head: Prompt | None = None  # the first system message, if nothing precedes it
    edits: dict[str, Json] = {}
    known: set[str] = set()  # entries in the context of the stretch's last answer
    sent: PathStretch | None = None
    end = 0
    stretches: list[PathStretch] = []
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
            added = sent.tools_added or len(current.tools) > len(sent.tools)
            current = replace(current, tools_added=added)
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


def update_text(message: Entry) -> str:
    """Returns the text of a later system message that is sent at its place."""
    parts = [plain_text(message.get("content"))]
    for name, value in as_dict(message.get("sections")).items():
        if isinstance(value, str):
            parts.append(f'Updated system prompt section "{name}":\n\n{value}')
        else:
            parts.append(f'Removed system prompt section "{name}".')
    return "\n\n".join(filter(None, parts))


def plain_text(content: Json) -> str:
    """Returns content as one text, its text blocks joined by line breaks."""
    if isinstance(content, str):
        return content
    blocks = as_dicts(content)
    return "\n".join(as_str(block.get("text")) for block in blocks if block.get("type") == "text")


def _system_message(node: Node) -> Entry | None:
    """Returns the system message of an entry, or the one with which a compaction begins."""
    if node.entry.get("type") == "compaction":
        message = node.entry.get("systemMessage")
        return message if isinstance(message, dict) else None
    return as_dict(node.entry.get("message")) if node.role == "system" else None


def _context(
    answer: Node | None, prompt: Prompt, head: Prompt | None, edits: Mapping[str, Json]
) -> PathStretch:
    """Returns the context of an answer, as a stretch without entries."""
    message = as_dict(answer.entry.get("message")) if answer is not None else {}
    in_place = _keeps_place(message)
    shown = head if in_place else prompt
    return PathStretch(
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


def _extends(new: PathStretch, old: PathStretch, known: set[str]) -> bool:
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
