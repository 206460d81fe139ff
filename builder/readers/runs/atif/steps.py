"""Turns the steps of an ATIF trajectory into messages, in the segments that the model saw.

Converters write the format, so its text is not always the model's.
Source: docs/formats/atif.md; harbor 0.25.0 agents/terminus_2/terminus_2.py (the origin of messages
and calls, the hand-off of context), agents/installed/openhands.py and vibe.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import (
    REPEAT,
    Context,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.jsonio import dumps
from builder.readers.runs.atif.harbor_rows import ENDING
from builder.readers.toolkit.chat_messages import as_harness, content
from builder.readers.toolkit.comparison import CallKeys, calls
from builder.readers.toolkit.marks import ids_beside
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_of, name_or_none
from builder.readers.toolkit.unknown_keys import noted, unknown_names

_TERMINUS = "terminus"
_OPENHANDS = "openhands"
_PARSED = re.compile(r"(?:Analysis|Plan): ")
"""The beginning of messages that terminus-2 composes from the model's JSON or XML."""
_MADE_UP = "Technical difficulties. Please continue with the task."
"""The text that terminus-2 logs as the model's when every request failed."""
_HANDOFF = "Performed context summarization and handoff"
"""The system step of terminus-2 versions without `context_management`."""

Lookup = Callable[[dict[str, Json]], Sequence[dict[str, Json]]]
"""Maps a subagent_trajectory_ref to the steps of its trajectory, () if not in the log."""

_KEYS = frozenset({
    "step_id", "timestamp", "source", "model_name", "reasoning_effort", "message",
    "reasoning_content", "tool_calls", "observation", "observations", "metrics",
    "is_copied_context", "llm_call_count", "extra",
})  # fmt: skip
"""Keys of a step; `extra` is for the program that wrote it."""


@dataclass(slots=True)
class Segment:
    """The messages from one replacement of the model's context to the next.

    ended  the last step ended the run with a call that has no result
    """

    messages: list[Message] = field(default_factory=list)
    context: Context | None = None
    ended: bool = False

    @property
    def has_calls(self) -> bool:
        """Returns whether a turn calls a tool."""
        return any(map(calls, self.messages))


class Steps:
    """Reads the steps of one trajectory: `take` each in order, then see `segments`."""

    def __init__(self, agent: dict[str, Json], keys: CallKeys, lookup: Lookup) -> None:
        self.segments = [Segment()]
        self.changes: Counter[str] = Counter()
        self._agent = as_str(agent.get("name"))
        self._keys = keys
        self._lookup = lookup
        if self.in_text:  # the log contains the whole prompt, one user message
            self.segments[0].context = Context("logged")

    @property
    def in_text(self) -> bool:
        """Returns whether the agent offers no tools and parses JSON or XML in the model's text."""
        return self._agent.startswith(_TERMINUS)

    @property
    def _messages(self) -> list[Message]:
        return self.segments[-1].messages

    def take(self, step: dict[str, Json]) -> None:
        """Adds a step."""
        before, at = self._messages, len(self._messages)
        self._take(step)
        if self._messages is before and unknown_names(step, _KEYS):
            before[at:] = noted(before[at:], {**step, "role": step.get("source")}, _KEYS)

    def _take(self, step: dict[str, Json]) -> None:
        source = as_str(step.get("source"))
        parts = content(step.get("message"))
        results = self._results(step)
        if source == "agent":
            self._answer(step, parts, results)
            return
        if source == "system" and _replaces_context(step):
            self._replace_context(step)
            return
        late = any(message.role != "system" for message in self._messages)
        if source == "system" and late:
            if self._agent == _OPENHANDS:  # the interface's text for recalled knowledge
                self.changes["ui_text_dropped"] += bool(parts)
                parts = ()
            parts = as_harness(parts)
        if parts:
            self._messages.append(Message(source, parts))
        self._environment(results)

    def _answer(
        self, step: dict[str, Json], parts: tuple[Part, ...], results: list[ToolResult]
    ) -> None:
        calls = self._calls(step)
        if calls and self._agent == _OPENHANDS:  # the interface's text for the call
            self.changes["ui_text_dropped"] += any(isinstance(part, Text) for part in parts)
            parts = tuple(part for part in parts if not isinstance(part, Text))
        answer = _with_thoughts(as_str(step.get("reasoning_content")), parts)
        if not calls and not answer:  # an empty step contains the environment's actions
            self._environment(results)
            return
        code = self._untrained(step, parts, bool(calls))
        model = name_or_none(step.get("model_name"))
        tokens = ids_beside(step.get("metrics"))
        parts = (*answer, *calls)
        turn = Message("assistant", parts, untrained=code, model=model, tokens=tokens)
        self._messages.append(turn)
        self.segments[-1].ended = any(
            isinstance(call, ToolCall) and call.name in ENDING for call in calls
        )
        if calls and results:
            self._messages.append(Message("tool", tuple(results)))
        else:
            self._environment(results)

    def _untrained(self, step: dict[str, Json], parts: Sequence[Part], called: bool) -> str | None:
        """Returns why a step does not contain the model's original answer, or None."""
        text = next((part.text for part in parts if isinstance(part, Text)), "")
        if step.get("llm_call_count") == 0 or text == _MADE_UP:
            return "inserted"
        count = step.get("llm_call_count")
        if isinstance(count, int) and count > 1:
            self.changes["merged_answers"] += 1
            return "edited"
        if self.in_text and (called or _PARSED.match(text)):
            # The model answers in JSON or XML; the log contains only the parsed values.
            self.changes["reconstructed_answer"] += 1
            return "edited"
        return REPEAT if step.get("is_copied_context") is True else None

    def _calls(self, step: dict[str, Json]) -> list[Part]:
        """Returns the calls of a step; some writers use OpenAI's keys."""
        calls: list[Part] = []
        for item in as_list(step.get("tool_calls")):
            call = as_dict(item)
            function = as_dict(call.get("function"))
            name = call.get("function_name") or call.get("name") or function.get("name")
            arguments = call["arguments"] if "arguments" in call else function.get("arguments")
            call_id = name_of(call, "tool_call_id", "id")
            if isinstance(name, str) and name:
                key = self._keys.of(call_id)
                calls.append(ToolCall(name, arguments, id=call_id, key=key))
            else:
                calls.append(Unparsed(dumps(item), "bad_call"))
        return calls

    def _results(self, step: dict[str, Json]) -> list[ToolResult]:
        observation = step.get("observation") or step.get("observations")
        items = as_list(observation) or as_list(observation, "results")
        return [
            ToolResult(
                content(as_dict(item).get("content")),
                call_id=name_or_none(as_dict(item).get("source_call_id")),
            )
            for item in items
        ]

    def _environment(self, results: list[ToolResult]) -> None:
        """Adds results of a step without calls: of earlier calls, or text of the environment."""
        for result in results:
            if result.call_id is not None:
                self._messages.append(Message("tool", (result,)))
            elif result.content:
                self._messages.append(Message("user", as_harness(result.content)))

    def _replace_context(self, step: dict[str, Json]) -> None:
        """Begins a segment with the history that a compaction keeps.

        System texts stay. terminus-2 also keeps the task, and the summary and questions of a
        sub-agent, which the next step answers.
        """
        first = self.segments[0].messages
        kept = [message for message in first if message.role == "system"]
        context = None
        if self.in_text:
            kept += [message for message in first if message.role == "user"][:1]
            questions = self._questions(step)
            kept += questions
            context = Context("logged") if questions else Context("partial", ("history",))
        self.segments.append(Segment(kept, context))

    def _questions(self, step: dict[str, Json]) -> list[Message]:
        """Returns the messages of the sub-agent that got the summary and asked questions."""
        results = as_list(step, "observation", "results")
        for result in results:
            for ref in as_dicts(result, "subagent_trajectory_ref"):
                named = " ".join(
                    as_str(ref.get(key))
                    for key in ("trajectory_path", "trajectory_id", "session_id")
                )
                if "questions" not in named:
                    continue
                reading = Steps({}, CallKeys(named), lambda _: ())
                for asking in self._lookup(ref):
                    reading.take(asking)
                return [
                    replace(message, untrained=REPEAT) if message.role == "assistant" else message
                    for message in reading.segments[0].messages
                ]
        return []


def _replaces_context(step: dict[str, Json]) -> bool:
    management = as_dict(step, "extra", "context_management")
    if management:
        return management.get("boundary", "replace") == "replace"
    return as_str(step.get("message")).startswith(_HANDOFF)


def _with_thoughts(thought: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Returns thoughts and text; text before `</think>` is a thought too."""
    thoughts = [Reasoning(thought)] if thought else []
    first = parts[0] if parts else None
    if not isinstance(first, Text) or "</think>" not in first.text:
        return (*thoughts, *parts)
    before, _, after = first.text.partition("</think>")
    before = before.strip().removeprefix("<think>").strip()
    if before and before != thought.strip():
        thoughts.append(Reasoning(before))
    text = after.lstrip("\n")
    rest = [Text(text, harness=first.harness)] if text.strip() else []
    return (*thoughts, *rest, *parts[1:])
