"""What readers of chats share: turns of an answer with inline results, the newest leaf, files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from builder.conversation import Context, Json, Media, Message, Part, ToolCall, ToolResult
from builder.readers.toolkit.history import ChatNode, paths
from builder.readers.toolkit.narrow import as_str

_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic")


def file_media(file: dict[str, Json]) -> Media:
    """Returns the placeholder for a file with a `file_name`, whose content is not exported."""
    is_image = as_str(file.get("file_name")).lower().endswith(_IMAGES)
    return Media("image" if is_image else "file")


def newest_leaf(nodes: Mapping[str, ChatNode], times: Mapping[str, str]) -> str | None:
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
