"""Reads ADP standard samples (Agent Data Protocol): trajectories of actions and observations.

Source: docs/formats/adp.md; neulab/agent-data-protocol schema/ (MIT), versions 1.0 to 1.3.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Content,
    Conversation,
    Data,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import JsonFault, dumps
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit import literals, tags
from builder.readers.toolkit.chat_messages import text_or_data
from builder.readers.toolkit.made_up import end_at_made_up
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.rows import logged_outcome, read_each, row_name, splits
from builder.readers.toolkit.unknown_keys import message_keys, noted, unknown_names
from builder.sources.source import Source

_CALLS = frozenset({"api_action", "code_action"})
_OBSERVATIONS = frozenset(
    {"text_observation", "json_observation", "image_observation", "web_observation"}
)
_CLASSES = _CALLS | _OBSERVATIONS | {"message_action"}
_ROLES = {"user": "user", "agent": "assistant", "assistant": "assistant", "system": "system"}
_FINISH, _FINISH_END = "<finish>", "</finish>"

_Contents = tuple[Content, ...]


def _recognise(source: Source) -> str | None:
    for row in source.peek.objects:
        classes = [as_dict(item).get("class_") for item in as_list(row.get("content"))]
        if classes and any(isinstance(name, str) and name in _CLASSES for name in classes):
            return "content of actions and observations with class_"
    return None


def _trajectory(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    items = as_dicts(row.get("content"))
    trajectory = _Trajectory(any(item.get("source") == "environment" for item in items))
    for item in _with_plain_kwargs(items, trajectory.changes):
        trajectory.add(item)
    if not trajectory.messages:
        return Problem("no_messages", where, "the trajectory has no actions or observations")
    rewards = [item["reward"] for item in items if item.get("reward") is not None]
    return Conversation(
        id=row_name(where, row.get("id"), names),
        record=where,
        messages=end_at_made_up(trajectory.messages),
        records=1,
        changes=trajectory.changes,
        complete=trajectory.messages[-1].role == "assistant",
        outcome=logged_outcome(
            as_dict(row.get("details")), row, reward=rewards[0] if len(rewards) == 1 else rewards
        ),
    )


@dataclass(slots=True)
class _Trajectory:
    """Collects the messages of a trajectory.

    environment   an observation has the environment as its source, so that others are the user's
    run           consecutive calls without ids, which later observations answer
    answered      number of those calls that have been answered
    descriptions  texts of the run's actions, which converters repeat for each of its calls
    """

    environment: bool
    messages: list[Message] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)
    run: list[ToolCall] = field(default_factory=list)
    answered: int = 0
    descriptions: set[tuple[str, str]] = field(default_factory=set)

    def add(self, item: dict[str, Json]) -> None:
        """Adds the next action or observation."""
        kind = as_str(item.get("class_"))
        if kind in _OBSERVATIONS:
            self._observe(item)
        elif kind == "message_action" and item.get("source") == "user":
            self._add_message("user", text_or_data(item.get("content")))
        elif kind in _CALLS or kind == "message_action":
            self._act(item)
        else:
            self._add_message("user", (unknown_part(kind or "none"),))
        if unknown_names(item, keys := message_keys("adp")):
            self.messages[-1:] = noted(self.messages[-1:], item, keys)

    def _act(self, item: dict[str, Json]) -> None:
        if self.answered or not self.messages or self.messages[-1].role != "assistant":
            self.run, self.answered, self.descriptions = [], 0, set()
        parts: list[Part] = []
        for name in ("reasoning_content", "description"):
            words = as_str(item.get(name))
            if not words.strip():
                continue
            if (name, words) in self.descriptions:
                self.changes["repeated_description"] += 1
            elif name == "description":
                parts += tags.assistant_parts(words, self.changes)
            else:
                parts.append(Reasoning(words))
            self.descriptions.add((name, words))
        call = _call(item)
        if isinstance(call, ToolCall) and call.id is None:
            self.run.append(call)
        if call is not None:
            parts.append(call)
        elif isinstance(content := item.get("content"), str):
            parts += tags.assistant_parts(_without_finish(content, self.changes), self.changes)
        else:
            parts += text_or_data(content)
        self.messages.append(Message("assistant", tuple(parts)))

    def _observe(self, item: dict[str, Json]) -> None:
        observed, source = _observed_parts(item), as_str(item.get("source"))
        call_id = name_or_none(item.get("tool_call_id"))
        by_others = source in _ROLES and (source != "user" or self.environment)
        if call_id is not None:
            self.messages.append(Message("tool", (ToolResult(observed, call_id),)))
            self.answered += 1
        elif self.answered < len(self.run) and not by_others:
            if source == "user":
                self.changes["user_as_result"] += 1
            self.messages.append(Message("tool", (ToolResult(observed),)))
            self.answered += 1
        elif self.run and source not in _ROLES:  # another observation of the last call
            last = self.messages.pop()
            (result,) = last.parts
            assert isinstance(result, ToolResult), "the run was answered"
            more = replace(result, content=(*result.content, *observed))
            self.messages.append(replace(last, parts=(more,)))
        else:
            if source not in _ROLES:
                self.changes["environment_as_user"] += 1
            self._add_message(_ROLES.get(source, "user"), observed)

    def _add_message(self, role: str, parts: _Contents) -> None:
        self.run, self.answered, self.descriptions = [], 0, set()
        self.messages.append(Message(role, parts))


def _observed_parts(item: dict[str, Json]) -> _Contents:
    """Returns an observation's content: for a web page its address, tree, source and image."""
    kind = item.get("class_")
    if kind == "image_observation":
        return (Media("image"),)
    if kind != "web_observation":
        return text_or_data(item.get("content"))
    page: dict[str, Json] = {
        name: item[name] for name in ("url", "axtree", "html") if item.get(name) is not None
    }
    image = (Media("image"),) if item.get("image_observation") else ()
    return (*((Data(page),) if page else ()), *image)


def _call(item: dict[str, Json]) -> ToolCall | Unparsed | None:
    call_id = name_or_none(item.get("tool_call_id"))
    if item.get("class_") == "code_action":
        code: dict[str, Json] = {name: item.get(name) for name in ("language", "content")}
        return ToolCall("code_action", code, call_id)
    if item.get("class_") != "api_action":
        return None
    name = name_or_none(item.get("function"))
    if name is None:
        return Unparsed(dumps(item), "bad_call")
    return ToolCall(name, item.get("kwargs"), call_id)


def _without_finish(text: str, changes: Counter[str]) -> str:
    before, tag, rest = text.partition(_FINISH)
    if not tag or not rest.rstrip().endswith(_FINISH_END):
        return text
    changes["finish_tags"] += 1
    inner = rest.rstrip().removesuffix(_FINISH_END).removeprefix(" ").removesuffix(" ")
    return before + inner


def _with_plain_kwargs(
    items: list[dict[str, Json]], changes: Counter[str]
) -> Iterator[dict[str, Json]]:
    """Yields the items; decodes quoted strings or Python source if all values are of that form."""
    calls = [item for item in items if item.get("class_") == "api_action"]
    values = [value for item in calls for value in as_dict(item.get("kwargs")).values()]
    strings = list(_strings(values))
    read: Callable[[Json], Json] | None = None
    if any(text[:1] in ("'", '"') for text in strings):
        with contextlib.suppress(JsonFault):
            for value in values:
                _from_source(value)
            read = _from_source
    if read is None and strings and all(len(t) > 1 and t[0] == t[-1] == '"' for t in strings):
        read = _unwrapped
    for item in items:
        kwargs = as_dict(item.get("kwargs"))
        if read is None or not kwargs or item.get("class_") != "api_action":
            yield item
            continue
        changes["kwargs_unquoted"] += 1
        yield {**item, "kwargs": {name: read(value) for name, value in kwargs.items()}}


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value if isinstance(value, list) else value.values():
            yield from _strings(inner)


def _from_source(value: Json) -> Json:
    """Returns the value of a Python literal. Raises JsonFault for any other value."""
    return literals.value(as_str(value), Counter())


def _unwrapped(value: Json) -> Json:
    if isinstance(value, list):
        return [_unwrapped(item) for item in value]
    if isinstance(value, dict):
        return {name: _unwrapped(item) for name, item in value.items()}
    return value[1:-1] if isinstance(value, str) else value


READER = declared("adp", recognise=_recognise, read=read_each(_trajectory, "adp"), splits=splits)
