"""Mutations to the text of calls and to thoughts."""

from __future__ import annotations

import json
import re

from mutations.edits import (
    CALL,
    CALLS,
    PAIRS,
    Edits,
    Mutation,
    asks,
    call,
    call_twice,
    codes,
    compact,
    escaped_non_ascii,
    exponent,
    in_answer,
    in_arguments,
    in_call,
    in_message,
    in_messages,
    in_prose,
    in_value,
    indented,
    kinds,
    string_edit,
    swap,
)

EDITS: Edits = {
    (in_answer, CALLS): {
        "newline after <tool_call> lost": swap("<tool_call>\n", "<tool_call>"),
        "newline before </tool_call> lost": swap("\n</tool_call>", "</tool_call>"),
        "space after <tool_call>": swap("<tool_call>\n", "<tool_call> "),
        "CRLF after <tool_call>": swap("<tool_call>\n", "<tool_call>\r\n"),
        "two newlines after <tool_call>": swap("<tool_call>\n", "<tool_call>\n\n"),
        "indented call": swap("<tool_call>\n{", "<tool_call>\n  {"),
        "<tool_call> lost": swap("<tool_call>\n", ""),
        "</tool_call> lost": swap("\n</tool_call>", ""),
        "newline between text and call lost": lambda t: (
            re.sub(r"(?<=[^\n])\n<tool_call>", "<tool_call>", t, count=1)
            if not t.startswith("<")
            else None
        ),
        "newline between two calls lost": swap(
            "</tool_call>\n<tool_call>", "</tool_call><tool_call>"
        ),
        "blank line between two calls": swap(
            "</tool_call>\n<tool_call>", "</tool_call>\n\n<tool_call>"
        ),
    },
    (in_call, CALLS): {
        "compact separator after name": lambda n, a: call(n, a).replace('": ', '":', 1),
        "arguments before name": lambda n, a: (
            f'<tool_call>\n{{"arguments": {a}, "name": "{n}"}}\n</tool_call>'
        ),
        "parameters for arguments": lambda n, a: call(n, a).replace(
            '"arguments"', '"parameters"', 1
        ),
        "an id in the call": lambda n, a: (
            call(n, a)[: -len("}\n</tool_call>")] + ', "id": "c1"}\n</tool_call>'
        ),
        "arguments missing": lambda n, _: f'<tool_call>\n{{"name": "{n}"}}\n</tool_call>',
        "brace lost": lambda n, a: call(n, a).replace("}\n</tool_call>", "\n</tool_call>"),
        "call as XML": lambda n, a: f"<tool_call>\n<function={n}>\n</function>\n</tool_call>",
    },
    (in_arguments, codes("structured")): {
        "compact separators in arguments": compact,
        "arguments over several lines": indented,
        "a key twice": lambda a: (
            "{" + a[1 : a.index(": ")] + ": 0, " + a[1:] if a != "{}" else None
        ),
        "a number in another spelling": exponent,
        "non-ASCII escaped": escaped_non_ascii,
        "slash escaped": lambda a: a.replace("/", "\\/"),
        "letter escaped": lambda a: re.sub(
            r'": "([a-z])', lambda m: f'": "\\u{ord(m[1]):04x}', a, count=1
        ),
    },
    (in_arguments, CALLS): {
        "arguments as JSON text": lambda a: json.dumps(a, ensure_ascii=False),
        "arguments null": lambda _: "null",
        "arguments a list": lambda a: f"[{a}]",
        "trailing comma": lambda a: a[:-1] + ",}" if a != "{}" else None,
        "Python literals": lambda a: repr(json.loads(a)) if a != "{}" else None,
        "NaN in arguments": lambda a: '{"n": NaN}',
    },
    (in_call, codes("tools")): {
        "name with a quote": lambda n, a: call(n + '\\"', a),
        "name in other case": lambda n, a: call(n.swapcase(), a),
    },
    (in_prose, codes("structured", "inverse")): {
        "</think> in prose": lambda t: t + "</think>",
        "words before a thought": lambda t: f"So: <think>\nhm\n</think>\n\n{t}",
    },
    (in_prose, codes("lossy")): {
        "an empty think block": lambda t: "<think>\n\n</think>\n\n" + t,
        "a think block in another form": lambda t: f"<think>hm</think>{t}",
    },
}
KINDS: tuple[Mutation, ...] = (
    *kinds(EDITS),
    Mutation("newline after the last call", in_message(asks, lambda t: t + "\n"), CALLS),
    Mutation("text after the call", in_message(asks, lambda t: t + "\nDone."), CALLS),
    Mutation(
        "call in a code fence",
        in_message(asks, lambda t: CALL.sub(lambda m: f"```json\n{m[0]}\n```", t, count=1)),
        CALLS,
    ),
    Mutation(
        "a call in prose",
        in_prose(lambda t: t + ' Use <tool_call>{"name": "x"}</tool_call>.'),
        CALLS,
    ),
    Mutation(
        "a tag in prose",
        in_prose(lambda t: t + " It ends with </tool_call>."),
        codes("calls", "tokens"),
    ),
    Mutation("a call twice", in_messages(call_twice), PAIRS),
    Mutation("empty name", in_call(lambda _, a: call("", a)), codes("tools", "calls")),
    Mutation(
        "</think> in an argument",
        in_value(string_edit(lambda t: t + "</think>")),
        codes("structured", "inverse"),
    ),
    Mutation(
        "<think> without an end",
        in_prose(lambda t: "<think>\n" + t),
        codes("tokens", "inverse", "lossy"),
    ),
    Mutation(
        "a call inside a thought",
        in_prose(lambda t: f"<think>\n{call('x', '{}')}\n</think>\n\n{t}"),
        codes("calls"),
    ),
    Mutation(
        "a thought the template drops",
        in_messages(
            lambda m: [
                *m[:-1],
                {**m[-1], "content": "<think>\nhm\n</think>\n\nOne moment."},
                {"role": "user", "content": "And?"},
                {"role": "assistant", "content": "Done."},
            ]
        ),
        codes("lossy", "pairing"),
    ),
    Mutation(
        "newline before the last answer",
        in_messages(
            lambda m: (
                [*m[:-1], {**m[-1], "content": "\n" + m[-1]["content"]}]
                if not m[-1]["content"].startswith("<think>")
                else None
            )
        ),
        codes("lossy"),
    ),
)
