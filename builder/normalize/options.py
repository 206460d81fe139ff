"""Defines the options of the normaliser."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from builder.conversation import Json
from builder.jsonio import dumps
from builder.options import DERIVED, SUPPLIED, options
from builder.qwen3.calls import ADDED_TOKENS
from builder.qwen3.templates import SPECIFIED, Style
from builder.text import map_strings

_TEMPORARY = re.compile(r"builder-definitions-\w+[/\\]")

Definition: TypeAlias = "dict[str, Json]"


@dataclass(frozen=True, slots=True)
class AgentDefinitions:
    """What one version of an agent sends; `system` and `tools` are None if not to be used.

    `headless`: without its terminal interface; None: it sends the same with it. `folder`: the
    working directory in whose place that of a session stands.
    """

    agent: str
    version: str
    system: str | None = None
    tools: tuple[Json, ...] | None = None
    headless: bool | None = None
    folder: str = ""

    def in_folder(self, folder: str | None) -> AgentDefinitions:
        """Returns what is sent in another working directory, which may be part of other names.

        Where that is not known (None), the random part of a capture's own folder is left out.
        """
        folder = folder or _TEMPORARY.sub("", self.folder)
        if not self.folder.strip("/") or folder == self.folder:
            return self
        names = dict(zip(_names_of(self.folder), _names_of(folder), strict=True))
        pattern = re.compile(f"(?:{'|'.join(map(re.escape, names))})(?![\\w-])")

        def moved(text: str) -> str:
            return pattern.sub(lambda match: names[match[0]], text)

        system = None if self.system is None else moved(self.system)
        tools = self.tools
        if tools is not None and pattern.search(dumps(list(tools))):
            tools = tuple(map_strings(tool, moved) for tool in tools)
        return replace(self, system=system, tools=tools)


def _names_of(folder: str) -> tuple[str, str, str]:
    """Returns a folder as agents write it: in Gemini CLI's paths, in Claude Code's and Qwen Code's.

    The last is the folder itself; the others are parts of the paths of what they remember.
    """
    name = re.split(r"[/\\]", folder.rstrip("/\\"))[-1].lower()
    slug = re.sub(r"[^a-z0-9]+", "-", name).strip("-") or "project"
    return f".gemini/tmp/{slug}", re.sub(r"[^a-zA-Z0-9]", "-", folder), folder


@dataclass(frozen=True, slots=True)
class SharedTools:
    """The definitions that the sessions of an agent share.

    inferred  {name: definition}, inferred from the calls of all sessions
    logged    {version: {name: definition}}, logged by sessions of this version
    common    {version: names of the tools in all logged lists of this version}
    source    {name: definition}, logged by other requests of the same source
    """

    inferred: Mapping[str, Definition] = field(default_factory=dict)
    logged: Mapping[str, Mapping[str, Definition]] = field(default_factory=dict)
    common: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: Mapping[str, Definition] = field(default_factory=dict)

    def listed(self, version: str | None, called: Collection[str]) -> list[Json]:
        """Returns the definitions for a session that logged none: common and called tools."""
        known = self.logged.get(version or "", {})
        names = {*self.common.get(version or "", ()), *called}
        return [known[name] for name in sorted(names) if name in known]

    def elsewhere(self, version: str | None) -> Mapping[str, Definition]:
        """Returns the definitions in other logs that a session or request of a log may use."""
        return {**self.source, **self.logged.get(version or "", {})}


Unit = Literal["conversation", "query", "turn"]
Masked = Literal["error", "denied", "interrupted", "repeated", "no_thought", "rewound"]
"""Kinds of turns that may be context only; each is the code of such a turn."""


@options
@dataclass(frozen=True, slots=True)
class LengthOptions:
    """Options of `limits:` (configs/default.yaml describes each key)."""

    max_tokens: int | None = None
    too_long: Literal["reject", "split", "cut"] = "reject"
    tool_response_tokens: int | None = None


@options
@dataclass(frozen=True, slots=True)
class NormalizeOptions:
    """Options of `normalize:` in the configuration (configs/default.yaml describes each key).

    The last eight are not keys. `supplied_tools` and `supplied_system` come from the options of an
    input whose logs lack them. `captured` are what agents send; `builder.normalize.tools.for_log`
    supplies the one for a log, and sets `supplied_source`, the source of the tools, and
    `of_other_version`: which of `tools` and `system` are not of the log's version. `shared_tools`
    come from other sessions of the same agent (None: not known yet). `added_tokens` are the control
    tokens of the target tokenizer, `style` is that of its chat template.
    """

    unit: Unit = "conversation"
    system: Literal["keep", "drop", "replace"] = "keep"
    late_system: Literal["user", "keep", "reject"] = "user"
    harness: Literal["keep", "drop"] = "keep"
    reasoning: Literal["drop", "keep"] = "drop"
    history: Literal["logged", "vllm", "sglang"] = "logged"
    end: Literal["call", "answer"] = "call"
    untrained_turns: Literal["context", "split", "weight", "reject"] = "context"
    mask: tuple[Masked, ...] = ("rewound",)
    parallel_calls: Literal["keep", "split", "reject"] = "keep"
    control_tokens: Literal["context", "neutralise", "reject"] = "context"
    tools: Literal["all", "called"] = "all"
    missing_tools: Literal["untrained", "infer", "reject"] = "untrained"
    allow_eval: bool = False
    supplied_tools: tuple[Json, ...] | None = field(default=None, metadata=SUPPLIED)
    supplied_system: str | None = field(default=None, metadata=SUPPLIED)
    supplied_source: Literal["supplied", "captured"] = field(default="supplied", metadata=SUPPLIED)
    of_other_version: tuple[str, ...] = field(default=(), metadata=SUPPLIED)
    captured: tuple[AgentDefinitions, ...] = field(default=(), metadata=SUPPLIED)
    shared_tools: SharedTools | None = field(default=None, metadata=SUPPLIED)
    added_tokens: tuple[str, ...] = field(default=ADDED_TOKENS, metadata=SUPPLIED)
    style: Style = field(default=SPECIFIED, metadata=DERIVED)
