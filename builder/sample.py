"""The Sample: exactly what a trainer reads, and the dialogue that it was made from.

A `Dialogue` is a conversation made fit for the chat template but still structured (calls are
calls); a `Sample` is the flattened training record. Flattening is `builder.qwen3.flatten`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from builder.conversation import Json
from builder.jsonio import dumps, quoted


@dataclass(frozen=True)
class Call:
    """A tool call ready to be written.

    `text` is the exact JSON text of the arguments inside `<tool_call>`. It is
    `dumps(arguments)` unless control tokens in it were neutralised by JSON escapes; it always
    decodes to `arguments`.
    """

    name: str
    arguments: dict[str, Json]
    text: str

    @classmethod
    def of(cls, name: str, arguments: dict[str, Json]) -> Call:
        """The call with its arguments written as the template's `tojson` writes them."""
        plain = dumps(arguments)
        return cls.written(name, arguments, plain, plain)

    @classmethod
    def written(cls, name: str, arguments: dict[str, Json], text: str, plain: str) -> Call:
        """A call of which it is known how `tojson` writes its arguments."""
        call = cls(name, arguments, text)
        call.__dict__["plain"] = plain
        return call

    @cached_property
    def plain(self) -> str:
        """The arguments as the template's `tojson` writes them, whatever `text` is."""
        return dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a dialogue.

    role        system, user, assistant or tool
    content     the text; empty for role tool
    reasoning   assistant: the thought, without newlines at its ends, or ""
    calls       assistant: its calls in order
    responses   tool: the answers to the calls of the turn before, in the order of the calls
    """

    role: str
    content: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    responses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Turns that obey the check `order` of verification.md, and wrapped tool definitions."""

    turns: tuple[Turn, ...]
    tools: tuple[Json, ...] = ()


@dataclass(frozen=True)
class Sample:
    """The training record: messages as (role, content) and tool definitions, nothing more."""

    messages: tuple[tuple[str, str], ...]
    tools: tuple[Json, ...] = ()

    @classmethod
    def written(
        cls, messages: tuple[tuple[str, str], ...], tools: Sequence[tuple[Json, str]]
    ) -> Sample:
        """A sample of tools whose JSON texts are known."""
        sample = cls(messages, tuple(tool for tool, _ in tools))
        sample.__dict__["definitions"] = tuple(text for _, text in tools)
        return sample

    @cached_property
    def definitions(self) -> tuple[str, ...]:
        """The tools as JSON text, each as the template's `tojson` writes it."""
        return tuple(map(dumps, self.tools))

    @cached_property
    def record(self) -> dict[str, Json]:
        """The record as a JSON value: {"messages": [{"role", "content"}…], "tools": […]}."""
        return {
            "messages": [{"role": role, "content": content} for role, content in self.messages],
            "tools": list(self.tools),
        }

    @cached_property
    def line(self) -> bytes:
        """Its line in `data/`, without the newline. Raises UnicodeEncodeError: lone surrogates."""
        messages = b", ".join(
            b'{"role": %b, "content": %b}' % (quoted(role), quoted(content))
            for role, content in self.messages
        )
        definitions = ", ".join(self.definitions).encode("utf-8")
        return b'{"messages": [%b], "tools": [%b]}' % (messages, definitions)

    @cached_property
    def id(self) -> str:
        """sha256 of `line`, in hex: a sample is named by what it says."""
        return hashlib.sha256(self.line).hexdigest()
