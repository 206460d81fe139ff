"""Finds calls in the markup of another model, which a server did not parse out of an answer.

Such a text is a call that did not happen, in the control tokens of the model that wrote it. Markup
of Qwen3 and of the targets is read by `builder.readers.toolkit.tags`.
"""

from __future__ import annotations

import re

_MARKS = (
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
    if not any(mark in text for mark in _MARKS):
        return None
    for found in _CALL.finditer(text):
        before = text[: found.start()]
        if before.count("```") % 2 == 0 and not before.endswith("`"):
            return re.split(r"\s", found[0], maxsplit=1)[0]
    return None
