"""Finds texts that show a made-up call or result: invented outputs, other markup, unknown tools.

Source: docs/formats/sharegpt.md, "What is left out".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from builder.conversation import Message, Part, Reasoning, Text, ToolCall, ToolResult, Unparsed

_FLATTENED = re.compile(
    r"^\W*(?:Action(?: Input)?|Function(?: Name| Input)?|Tool(?: Name| Input)?) ?\d*\W*:"
    r"(?s:.*?)^\W*(?:Observation|(?:Function|Tool) (?:Output|Response|Result)) ?\d*\W*:"
    r"|^FUNCTION RESPONSE:",
    re.MULTILINE,
)
"""A call as prose and, on a later line, the output of the tool."""
_OUTPUT = r"(?:tool|function|code|exec(?:ution)?|execute|search)[_-]?(?:result|response|output)s?"
_TAGGED = re.compile(
    rf"""
    </(?:code|python|bash|sql|search|query|browse|tool|tool_call|function_call|call|action|execute)>
    \s* <(?:{_OUTPUT}|interpreter|information|results?|observations?|output|execution|documents?)>
    | ^```[ \t]*\n\s* ^```(?:{_OUTPUT}|output)\b      # NuminaMath-TIR, ToRA, Gemma
    | <llm-code-output>                                # OpenMathInstruct
    | <\|(?:start|begin)?_?(?:of)?_?(?:{_OUTPUT}|exec|execution|observation|documents?)\|>
    """,
    re.MULTILINE | re.VERBOSE | re.ASCII,
)
"""A call in the markup of a dataset and, directly after it, the output of the tool."""
_MARKS = ("</", "```", "<|", "<llm-code-output>")
"""Texts of which each markup has one; to look for them is much faster than the pattern."""


def end_at_made_up(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Returns the messages with an `Unparsed` part in each turn at which a sample must end.

    bad_call       results follow a turn that has no calls, so a call is in its prose
    orphan_result  the turn follows results that belong to no call
    flattened      the turn's text contains a call and the tool's answer
    """
    marked: list[Message] = []
    asking: int | None = None  # position of the assistant turn that the next results answer
    calls = results = 0
    orphan = False
    for message in messages:
        kept = message
        if message.role == "assistant":
            if not marked or marked[-1].role != "assistant":
                calls = results = 0
            calls += sum(isinstance(part, ToolCall) for part in message.parts)
            asking = len(marked)
            if orphan:
                kept = _marked(message, "orphan_result")
            elif any(map(_is_flattened, message.parts)):
                kept = _marked(message, "flattened")
            orphan = False
        elif message.role == "tool":
            results += sum(isinstance(part, ToolResult) for part in message.parts)
            if results > calls and asking is not None and (calls == 0 or _ends(marked[asking])):
                marked[asking] = _marked(marked[asking], "bad_call")
            else:
                orphan = orphan or results > calls
        else:
            asking, calls, results = None, 0, 0
        marked.append(kept)
    return tuple(marked)


def _is_flattened(part: Part) -> bool:
    if not isinstance(part, Text | Reasoning):
        return False
    marked = any(mark in part.text for mark in _MARKS)
    return bool(_FLATTENED.search(part.text) or (marked and _TAGGED.search(part.text)))


def _ends(message: Message) -> bool:
    return any(isinstance(part, Unparsed) for part in message.parts)


def _marked(message: Message, code: str) -> Message:
    if _ends(message):
        return message
    return replace(message, parts=(*message.parts, Unparsed("", code)))


# -- calls in the markup of another model ---------------------------------------------------------

_FOREIGN_MARKS = (
    "<|", "<\uff5c", "[TOOL_CALLS]", "<minimax:tool_call>", "<TOOLCALL>", "<start_function_call>",
    "<function_calls>",
)  # fmt: skip
"""Texts of which each markup below has one; to look for them is much faster than the pattern."""

_CALL = re.compile(
    r"""
    (?: <\|channel\|> \s* (?:commentary|analysis) \s+ to= [\w.-]    # gpt-oss
    | <\|(?:start|assistant)\|> \w* \s* to=functions\.
    | <\uff5ctool\u2581calls?\u2581begin\uff5c>                     # DeepSeek V3 and R1
    | <\uff5cDSML\uff5c (?:function|tool)_calls>                    # DeepSeek V3.2 and later
    | <\|tool_calls_section_begin\|> | <\|tool_call_begin\|>        # Kimi K2
    | <\|python_tag\|> \s* [\[{\w]                                  # Llama 3
    | \[TOOL_CALLS\] \s* (?:[\[{] | [\w.-]+ \s* (?:\[ARGS\] | \[CALL_ID\] | \{))    # Mistral
    | <minimax:tool_call> \s* <invoke
    | <\|tool_call_start\|> \s* [\[{]                               # LFM2
    | <\|tool_call\|?> \s* (?:[\[{] | call:)                        # Granite, Phi; Gemma 4
    | <start_function_call> \s* call:                               # FunctionGemma
    | <TOOLCALL> \s* [\[{]                                          # Nemotron
    | <function_calls> \s* <invoke \s+ name=                        # Anthropic's older form
    )
    """,
    re.VERBOSE,
)


def foreign_call(text: str) -> str | None:
    """Returns the markup that begins a call in another model's form; None if there is none.

    Quoted markup, in a code block or between backticks, is text about it.
    """
    if not any(mark in text for mark in _FOREIGN_MARKS):
        return None
    for found in _CALL.finditer(text):
        before = text[: found.start()]
        if before.count("```") % 2 == 0 and not before.endswith("`"):
            return re.split(r"\s", found[0], maxsplit=1)[0]
    return None


# -- results that say that the called tool does not exist -----------------------------------------

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
