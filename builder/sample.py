"""Defines the Sample, which a trainer reads, and the Dialogue that it is made from.

A `Dialogue` is a conversation in the form of the chat template but still structured (calls are
calls); a `Sample` is the flattened training record. Flattening is `builder.qwen3.flat`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from builder.brief import brief
from builder.conversation import Json, TokenIds
from builder.jsonio import dumps, quoted


@dataclass(frozen=True)
class Call:
    """A tool call in its final form.

    `text` is the exact JSON text of the arguments inside `<tool_call>`. It is `dumps(arguments)`
    unless control tokens in it were neutralised by JSON escapes; it always decodes to `arguments`.
    """

    name: str
    arguments: dict[str, Json]
    text: str

    @classmethod
    def of(cls, name: str, arguments: dict[str, Json]) -> Call:
        """Makes a call with its arguments written as the template's `tojson` writes them."""
        plain = dumps(arguments)
        return cls.written(name, arguments, plain, plain)

    @classmethod
    def written(cls, name: str, arguments: dict[str, Json], text: str, plain: str) -> Call:
        """Makes a call whose arguments `tojson` writes as `plain`."""
        call = cls(name, arguments, text)
        call.__dict__["plain"] = plain
        return call

    @cached_property
    def plain(self) -> str:
        """Returns the arguments as the template's `tojson` writes them, whatever `text` is."""
        return dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a dialogue.

    role        system, user, assistant or tool
    content     the text; empty for role tool
    reasoning   assistant: the thought, without newlines at either end, or ""
    calls       assistant: its calls in order
    responses   tool: the results of the calls in the previous turn, in the order of the calls
    trained     assistant: False if the turn is only context; `flatten` then writes weights
    tokens      assistant: the ids of its tokens in the log, which its text is compared with
    """

    role: str
    content: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    responses: tuple[str, ...] = ()
    trained: bool = True
    tokens: TokenIds | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Turns that obey the check `order` (docs/output.md), and wrapped tool definitions."""

    turns: tuple[Turn, ...]
    tools: tuple[Json, ...] = ()

    def __repr__(self) -> str:
        """Returns the numbers of turns and tools in one line."""
        return brief(self, f"{len(self.turns)} turns", f"{len(self.tools)} tools")


Weights: TypeAlias = "tuple[int | None, ...]"


@dataclass(frozen=True)
class Sample:
    """The training record: messages as (role, content), and tool definitions.

    `weights` is empty if no message has a weight, else it has one for each message: 0 (not
    trained), 1 (trained) or None (not set: an assistant message is trained). This is the convention
    of OpenAI's fine-tuning format.

    `thoughts` is empty unless the target's template reads thoughts only from `reasoning_content`:
    then it has one text for each message, "" if there is none.
    """

    messages: tuple[tuple[str, str], ...]
    tools: tuple[Json, ...] = ()
    weights: Weights = ()
    thoughts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Returns the numbers of messages and tools in one line."""
        return brief(self, f"{len(self.messages)} messages", f"{len(self.tools)} tools")

    @classmethod
    def written(
        cls,
        messages: tuple[tuple[str, str], ...],
        tools: Sequence[tuple[Json, str]],
        weights: Weights = (),
        thoughts: tuple[str, ...] = (),
    ) -> Sample:
        """Makes a sample from tools whose JSON texts are known."""
        sample = cls(messages, tuple(tool for tool, _ in tools), weights, thoughts)
        sample.__dict__["definitions"] = tuple(text for _, text in tools)
        return sample

    @cached_property
    def definitions(self) -> tuple[str, ...]:
        """Returns the tools as JSON text, each as the template's `tojson` writes it."""
        return tuple(map(dumps, self.tools))

    @property
    def targets(self) -> tuple[int, ...]:
        """Returns the ordinals (among the assistant turns, from 0) of the trained turns."""
        weights = self.weights or (None,) * len(self.messages)
        answers = (
            weight
            for (role, _), weight in zip(self.messages, weights, strict=True)
            if role == "assistant"
        )
        return tuple(at for at, weight in enumerate(answers) if weight != 0)

    @cached_property
    def record(self) -> dict[str, Json]:
        """Returns the record as JSON: {"messages": [{"role", "content"}…], "tools": […]}."""
        rows = self.rows
        for row, weight in zip(rows, self.weights, strict=False):
            if weight is not None:
                row["weight"] = weight
        return {"messages": list(rows), "tools": list(self.tools)}

    @property
    def rows(self) -> list[dict[str, Json]]:
        """Returns the messages as the chat template reads them, without weights."""
        rows: list[dict[str, Json]] = [
            {"role": role, "content": content} for role, content in self.messages
        ]
        for row, thought in zip(rows, self.thoughts, strict=False):
            if thought:
                row["reasoning_content"] = thought
        return rows

    @cached_property
    def line(self) -> bytes:
        """Returns its line in `data/`, without the newline.

        Raises UnicodeEncodeError for lone surrogates.
        """
        weights = self.weights or (None,) * len(self.messages)
        thoughts = self.thoughts or ("",) * len(self.messages)
        messages = b", ".join(
            b'{"role": %b, "content": %b%b%b}'
            % (
                quoted(role),
                quoted(content),
                b', "reasoning_content": %b' % quoted(thought) if thought else b"",
                b"" if weight is None else b', "weight": %d' % weight,
            )
            for (role, content), weight, thought in zip(
                self.messages, weights, thoughts, strict=True
            )
        )
        definitions = ", ".join(self.definitions).encode("utf-8")
        return b'{"messages": [%b], "tools": [%b]}' % (messages, definitions)

    @cached_property
    def id(self) -> str:
        """Returns the sha256 of `line` in hex, so that the id depends only on the content."""
        return hashlib.sha256(self.line).hexdigest()
