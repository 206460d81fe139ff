"""Finds results in which an agent program says that the called tool does not exist.

Each program has its own words: `No such tool available: X`, `Error: X is not a valid tool, try one
of [...]`, `Tool "X" not found in registry`, `unsupported call: X`. All of them name the tool, at
the start of the result or after words that report an error. A log without the tools of its requests
shows only there that the tool was not one of them.
"""

from __future__ import annotations

import re

_HEAD = 600
"""Characters of a result in which its statement can begin."""

_NAME = "\0"

_ABSENT = "unknown|unsupported|unavailable|unrecogni[sz]ed|undefined|invalid|non-?existent"

_STATEMENT = re.compile(
    rf"""
    (?:no\ such|{_ABSENT}|not\ an?\ available)    # unknown tool: X; unsupported call: X
        \ (?:[\w-]+\ )? (?:tools?|function|call) (?:\ \w+){{0,2}} \ ?[:=]?\ ? {_NAME}
    | no\ (?:tool|function) (?:\ \w+){{1,3}} \ ?[:=]?\ ? {_NAME}    # no tool named X
    | (?<!\w\ ) (?:(?:tool|function)[ _]?)? not[ _]?found    # tool not found: X; ToolNotFound: X
        (?:error|exception)? (?:\W+(?:tool|name))? \W+ {_NAME}
    | no\ (?:handler|implementation)\ (?:found\ )?for\ (?:the\ )?(?:tool|function) \ {_NAME}
    | (?:cannot|can[n']t|could\ not|couldn't|unable\ to)\ find\ (?:the\ |a\ )?
        (?:tool|function) (?:\ \w+){{0,2}} \ ?:?\ ? {_NAME}
    | (?:tool|function),? (?:\ \w+){{0,2}} \ ?:?\ ? {_NAME}    # tool X does not exist
        ,? (?:\ (?:which|that|is|was|does|could|can|tool|be|currently))*\ ?
        (?:not|n[o']t|n't) \ (?:be\ )?
        (?:found|exist|available|registered|recogni[sz]ed|known|defined|enabled|supported|contributed
        |(?:an?\ )?valid|(?:in|one\ of)\ the\ (?:list|available|allowed|registered|offered))
    | (?:tool|function) \ {_NAME}\ (?:is|was)\ (?:an?\ )? (?:{_ABSENT})
    | {_NAME}\ (?:is|was)\ (?:(?:not|n't)\ (?:an?|one\ of\ the)|an?\ (?:{_ABSENT}))
        \ (?:[\w-]+\ )? (?:tools?|functions?)\b    # X is not a valid tool
    """,
    re.VERBOSE | re.IGNORECASE,
)

_BEFORE = re.compile(r"(?:[^\n/()=;]|</|(?<=[>:])\n)*")
"""What may precede the statement: `<tool_use_error>Error: `, `{"error":"`, `MCP error -32602: `."""

_ERROR = re.compile(r"error|fail|invalid|reject|exception", re.IGNORECASE)
_SUBJECT = re.compile(
    r"(?:</?\w+>|[\W\d]|\b(?:there is|there's|the|requested|model|agent|assistant|you|tried"
    r"|attempted|to|called|call|use|an?|mcp)\b)*",
    re.IGNORECASE,
)
"""Words before the statement that report no error, such as "The model tried to call"."""


def says_unknown(result: str, name: str) -> bool:
    """Returns whether the text of a result says that there is no tool of this name."""
    head = result[:_HEAD]
    if not name or name not in head:
        return False
    quoted = re.compile(rf"""(?<![\w.-])\\?["'`]?{re.escape(name)}\\?["'`]?(?![\w-]|\.\w)""")
    statement = _STATEMENT.search(text := quoted.sub(_NAME, head))
    if statement is None or _BEFORE.fullmatch(before := text[: statement.start()]) is None:
        return False
    return _ERROR.search(before) is not None or _SUBJECT.fullmatch(before) is not None
