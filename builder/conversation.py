"""Defines the Conversation: the content of a log, unaltered and independent of any model.

Readers make these values and the normaliser reads them.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from builder.brief import brief
from builder.problem import Problem

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True)
class Text:
    """Text. `harness=True`: the agent program put it into the request, not the user or the model.

    Text that only the interface displayed, and that no request contained, is not part of a
    conversation.
    """

    text: str
    harness: bool = False


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The model's thoughts in clear text, never an encrypted or signed blob.

    `is_summary`: another model's words about a thought that the provider hides; never trained.
    """

    text: str
    is_summary: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model made it.

    `arguments` has the logged form: a `str` if the log has JSON text (OpenAI's wire form, possibly
    empty or invalid), else the decoded value. `id` is the log's own id and may repeat or be
    missing. `key` identifies the call across the whole log if the log's ids show that two records
    are one call (a replay after resume, a preserved message after compaction): the ledger counts
    calls with equal keys once. A call without a key is identified by its position.
    """

    name: str
    arguments: Json
    id: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Data:
    """A JSON value in place of text (a tool result that is an object).

    `compact`: the program sends it as JSON text without spaces, as JavaScript's `JSON.stringify`
    and Rust's `serde_json` write it.
    """

    value: Json
    compact: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class Media:
    """An image, sound or document, without its bytes; `kind`: image, audio, video or file."""

    kind: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Unparsed:
    """Something that could not be understood: its text, and why (`code`).

    If it is in an assistant message, the sample ends before that turn. Code `unknown_part` (its
    text names the type) may occur in any message and result: the part is left out, and
    `unknown_part` is missing from the context of the answers after it.
    """

    text: str
    code: str


LOST_RECORD = Unparsed("", "lost_record")
"""In a message of the user: the log lacks records here, so that answers after it lack `history`.

An answer right after it, or to a result whose call is lost, may answer what is lost: not trained.
In an answer: records of the answer itself may be lost.
"""


Content: TypeAlias = Text | Data | Media | Unparsed
"""A part of a user message or of a tool result."""


def unknown_part(kind: str) -> Unparsed:
    """Returns the placeholder for a part of an unknown type; `kind` is the type's name."""
    return Unparsed(kind[:40], "unknown_part")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool, as the model saw it. `call_id` may be missing or repeat.

    `is_error`: whether the call failed; None: the log does not say. `is_denied`: the user or a
    policy refused it. `is_interrupted`: it was interrupted before it ended. These two are set only
    if the log says so.
    """

    content: tuple[Content, ...]
    call_id: str | None = None
    name: str | None = None
    is_error: bool | None = None
    is_denied: bool = False
    is_interrupted: bool = False


Part: TypeAlias = Text | Reasoning | ToolCall | ToolResult | Data | Media | Unparsed


LEVEL_MEANINGS = MappingProxyType(
    {
        "partial": "something is known to be missing",
        "logged": "nothing is known to be missing",
        "rendered": "prompt, tools and injected text are in the log as they were sent",
        "proven": "the log's digests of the requests agree, or it is a capture of the requests",
    }
)
"""{level of a `Context`: its meaning}, lowest first."""

LEVELS = tuple(LEVEL_MEANINGS)
"""The levels of a `Context`, lowest first."""
PARTIAL = LEVELS[0]

MISSING = MappingProxyType(
    {
        "system": "the system prompt is not in the log",
        "tools": "the tool definitions are not in the log",
        "system_template": "the log has a template of the system prompt, filled in later",
        "reminders": "text that the agent program put in is not in the log",
        "history": "earlier messages were sent in another form, or not at all",
        "encrypted_context": "a summary that only the provider can read",
        "server_tool": "results of a tool that ran at the provider",
        "media": "images, sound or files, shown as a placeholder",
        "reasoning": "earlier thoughts that the log hides",
        "unknown_part": "a part of an unknown type",
        "digest": "the log's digest of the request differs from its messages",
        "arguments": "numbers of the turn's own calls that the agent program may have rounded",
    }
)
"""The meaning of the codes in `Context.missing`."""


@dataclass(frozen=True, slots=True)
class Context:
    """How well the log shows the context in which a turn was answered (docs/context.md).

    level    proven: the log contains digests of the requests and they match, or it is a capture of
             the requests; rendered: the log has prompt, tools and injected text as they were sent;
             logged: nothing is known to be missing; partial: `missing` names what is missing
    missing  codes of `MISSING`; sorted, without repeats
    """

    level: str
    missing: tuple[str, ...] = ()

    @classmethod
    def lacking(cls, missing: Iterable[str], otherwise: str = "logged") -> Context:
        """Returns `partial` with these codes, or the level `otherwise` if there are none."""
        codes = tuple(sorted({*missing}))
        return cls("partial", codes) if codes else cls(otherwise)


def lowest(contexts: Collection[Context]) -> Context | None:
    """Combines contexts: the lowest level and every missing code. None if there are no contexts."""
    if not contexts:
        return None
    level = min((item.level for item in contexts), key=LEVELS.index)
    return Context(level, tuple(sorted({code for item in contexts for code in item.missing})))


def session_name(conversation: str) -> str:
    """Returns the name of the session that a conversation is a part of, from its id.

    The parts of a session are named after it: `ID/sub-agent`, `ID#segment`, `ID~branch`.
    """
    return re.split(r"\s*[/#~]", conversation, maxsplit=1)[0]


REPEAT = "repeat"
"""The code of `Message.untrained` for an answer of the model that is a target elsewhere."""


PREAMBLE = "commentary"
"""The participant of what the model says before its calls (harmony's channel of that name)."""


@dataclass(frozen=True, slots=True)
class TokenIds:
    """The tokens of an answer as the server or the trainer recorded them.

    answer  ids that the model gave, with or without the token that ended the turn
    prompt  all ids before them, generation prompt included; None: not recorded
    """

    answer: array[int]
    prompt: array[int] | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    `role` is system, developer, user, assistant or tool; any other logged role is kept and later
    rejected. Tool results are parts of messages of role tool. `turn` is the log's own id of the
    turn (message, response or step id): messages with equal ids are one turn, messages with
    different ids are not.

    `untrained` is the code of the reason why an assistant turn is context; None: it is a target.
    `REPEAT`: the model's own answer, which is a target in another conversation of the same log
    (kept by a compaction, or from an earlier segment). Every other code means that it is not the
    model's answer in this context: `zero_weight` (the log's author excluded it), `inserted` (by a
    program or a client), `prefilled` (begun by the client), `edited`, `stripped` (its calls were
    removed), `server_tool` (it used results that the log does not contain), `warmup`.

    `context` is that of an assistant turn if it differs from the conversation's. `model` is the
    name of the model that gave an assistant turn, as logged; None: the conversation's. `speaker` is
    the participant's name, if several give answers (AutoGen): those of two are not one turn.
    `PREAMBLE` as the participant: words to the user before calls, no answer by themselves.
    `tokens` are those of an assistant turn, if the log has their ids; they are no part of its
    content.
    `response` is the provider's id of the response that gave it, if that is logged and is not
    `turn`. `unknown` has the keys of the logged message that hold text and that its reader does not
    know.
    """

    role: str
    parts: tuple[Part, ...]
    turn: str | None = None
    untrained: str | None = None
    context: Context | None = None
    model: str | None = None
    speaker: str | None = field(default=None, compare=False, repr=False)
    tokens: TokenIds | None = field(default=None, compare=False, repr=False)
    response: str | None = field(default=None, compare=False, repr=False)
    unknown: tuple[str, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One conversation or one segment of it (compaction and rewinds make segments).

    id        the logged id (of a session, trace or row), unique within its source
    record    the location in the source: "lines 3-90", "session abc", "[4]"
    messages  in the order in which the model saw them; results right after the turn with the calls
    tools     tool definitions as logged, in any vendor's shape; None: the log has no information,
              (): it states that there were none
    model     the name of the model as logged, or None; that of turns whose message names none
    models    names of several models, if the log does not show which one gave which turn
    records   number of records read into this conversation and not counted in an earlier one
    problems  why it must not be trained on although it could be read (a truncated answer, an
              abandoned branch); the first code rejects it, its calls stay in the call ledger
    changes   {code: count} of changes that the reader had to make to logged text
    complete  the log states that the last turn is a target even if it calls a tool (a published
              single-turn dataset), so its calls do not count as unanswered
    license   as logged; few logs name one
    tools_source  the origin of `tools` according to the log (logged, supplied, inferred, mixed)
    evaluation  it belongs to a benchmark, which training on it would make worthless: rejected as
              `evaluation_data` unless the user allows it
    version   the version of the agent program, as logged
    folder    the working directory of the session, as logged
    headless  whether the program ran without its terminal interface; None: the log does not say
    context   how well the log shows what the model saw; None: derived from the conversation
              (`partial` if system prompt or tools are missing, else `logged`)
    recorded  it is a capture of requests: a target is the recorded response to a request that the
              log contains, so it is kept whatever precedes it (docs/context.md)
    outcome   how it ended, exactly as logged: reward, score, resolved, exit_status, error, labels,
              feedback, evaluator, and `benchmark`, the public benchmark that was run
    padded    it is from a table, whose structs may have nulls that no log contains
    doubles   a program in JavaScript wrote the log: long numbers in arguments may be rounded
    """

    id: str
    record: str
    messages: tuple[Message, ...]
    tools: tuple[Json, ...] | None = None
    model: str | None = None
    models: tuple[str | None, ...] = ()
    records: int = 0
    problems: tuple[Problem, ...] = ()
    changes: Mapping[str, int] = field(default_factory=dict)
    complete: bool = False
    license: str | None = None
    tools_source: str | None = None
    evaluation: bool = False
    version: str | None = None
    context: Context | None = None
    recorded: bool = False
    outcome: Mapping[str, Json] | None = None
    padded: bool = False
    doubles: bool = False
    folder: str | None = field(default=None, compare=False)
    headless: bool | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        """Returns the numbers of messages and tools and where they are from in one line."""
        parts = [f"{len(self.messages)} messages"]
        if self.tools is not None:
            parts.append(f"{len(self.tools)} tools")
        return brief(self, *parts, id=self.id, record=self.record, model=self.model)


@dataclass(frozen=True, slots=True)
class Ignored:
    """Records that contain nothing to learn from (such as a UI event), counted by code."""

    code: str
    records: int = 1


@dataclass(frozen=True, slots=True)
class Used:
    """Records that a conversation contains but does not count (`Conversation.records`)."""

    records: int = 1


Event: TypeAlias = Conversation | Problem | Ignored | Used
