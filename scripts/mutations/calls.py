"""Mutations to the text of calls and to thoughts."""

from __future__ import annotations

import json
import re

from mutations.edits import (
    CALL,
    CALLS,
    PAIRS,
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
    string_edit,
    swap,
)

KINDS: tuple[Mutation, ...] = (
    # The text of a call.
    Mutation(
        "newline after <tool_call> lost", in_answer(swap("<tool_call>\n", "<tool_call>")), CALLS
    ),
    Mutation(
        "newline before </tool_call> lost", in_answer(swap("\n</tool_call>", "</tool_call>")), CALLS
    ),
    Mutation("space after <tool_call>", in_answer(swap("<tool_call>\n", "<tool_call> ")), CALLS),
    Mutation("CRLF after <tool_call>", in_answer(swap("<tool_call>\n", "<tool_call>\r\n")), CALLS),
    Mutation(
        "two newlines after <tool_call>", in_answer(swap("<tool_call>\n", "<tool_call>\n\n")), CALLS
    ),
    Mutation("indented call", in_answer(swap("<tool_call>\n{", "<tool_call>\n  {")), CALLS),
    Mutation("<tool_call> lost", in_answer(swap("<tool_call>\n", "")), CALLS),
    Mutation("</tool_call> lost", in_answer(swap("\n</tool_call>", "")), CALLS),
    Mutation(
        "newline between text and call lost",
        in_answer(
            lambda t: (
                re.sub(r"(?<=[^\n])\n<tool_call>", "<tool_call>", t, count=1)
                if not t.startswith("<")
                else None
            )
        ),
        CALLS,
    ),
    Mutation(
        "newline between two calls lost",
        in_answer(swap("</tool_call>\n<tool_call>", "</tool_call><tool_call>")),
        CALLS,
    ),
    Mutation(
        "blank line between two calls",
        in_answer(swap("</tool_call>\n<tool_call>", "</tool_call>\n\n<tool_call>")),
        CALLS,
    ),
    Mutation("newline after the last call", in_message(asks, lambda t: t + "\n"), CALLS),
    Mutation("text after the call", in_message(asks, lambda t: t + "\nDone."), CALLS),
    Mutation(
        "call in a code fence",
        in_message(asks, lambda t: CALL.sub(lambda m: f"```json\n{m[0]}\n```", t, count=1)),
        CALLS,
    ),
    Mutation(
        "compact separator after name",
        in_call(lambda n, a: call(n, a).replace('": ', '":', 1)),
        CALLS,
    ),
    Mutation("compact separators in arguments", in_arguments(compact), codes("structured")),
    Mutation("arguments over several lines", in_arguments(indented), codes("structured")),
    Mutation(
        "arguments before name",
        in_call(lambda n, a: f'<tool_call>\n{{"arguments": {a}, "name": "{n}"}}\n</tool_call>'),
        CALLS,
    ),
    Mutation(
        "arguments as JSON text", in_arguments(lambda a: json.dumps(a, ensure_ascii=False)), CALLS
    ),
    Mutation("arguments null", in_arguments(lambda _: "null"), CALLS),
    Mutation("arguments a list", in_arguments(lambda a: f"[{a}]"), CALLS),
    Mutation(
        "parameters for arguments",
        in_call(lambda n, a: call(n, a).replace('"arguments"', '"parameters"', 1)),
        CALLS,
    ),
    Mutation(
        "an id in the call",
        in_call(lambda n, a: call(n, a)[: -len("}\n</tool_call>")] + ', "id": "c1"}\n</tool_call>'),
        CALLS,
    ),
    Mutation(
        "arguments missing",
        in_call(lambda n, _: f'<tool_call>\n{{"name": "{n}"}}\n</tool_call>'),
        CALLS,
    ),
    Mutation(
        "brace lost",
        in_call(lambda n, a: call(n, a).replace("}\n</tool_call>", "\n</tool_call>")),
        CALLS,
    ),
    Mutation("trailing comma", in_arguments(lambda a: a[:-1] + ",}" if a != "{}" else None), CALLS),
    Mutation(
        "Python literals", in_arguments(lambda a: repr(json.loads(a)) if a != "{}" else None), CALLS
    ),
    Mutation("NaN in arguments", in_arguments(lambda a: '{"n": NaN}'), CALLS),
    Mutation(
        "a key twice",
        in_arguments(lambda a: "{" + a[1 : a.index(": ")] + ": 0, " + a[1:] if a != "{}" else None),
        codes("structured"),
    ),
    Mutation("a number in another spelling", in_arguments(exponent), codes("structured")),
    Mutation("non-ASCII escaped", in_arguments(escaped_non_ascii), codes("structured")),
    Mutation("slash escaped", in_arguments(lambda a: a.replace("/", "\\/")), codes("structured")),
    Mutation(
        "letter escaped",
        in_arguments(
            lambda a: re.sub(r'": "([a-z])', lambda m: f'": "\\u{ord(m[1]):04x}', a, count=1)
        ),
        codes("structured"),
    ),
    Mutation(
        "call as XML",
        in_call(lambda n, a: f"<tool_call>\n<function={n}>\n</function>\n</tool_call>"),
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
    Mutation("name with a quote", in_call(lambda n, a: call(n + '\\"', a)), codes("tools")),
    Mutation("name in other case", in_call(lambda n, a: call(n.swapcase(), a)), codes("tools")),
    Mutation("empty name", in_call(lambda _, a: call("", a)), codes("tools", "calls")),
    # Thoughts.
    Mutation(
        "</think> in an argument",
        in_value(string_edit(lambda t: t + "</think>")),
        codes("structured", "inverse"),
    ),
    Mutation(
        "</think> in prose", in_prose(lambda t: t + "</think>"), codes("structured", "inverse")
    ),
    Mutation(
        "<think> without an end",
        in_prose(lambda t: "<think>\n" + t),
        codes("tokens", "inverse", "lossy"),
    ),
    Mutation(
        "an empty think block", in_prose(lambda t: "<think>\n\n</think>\n\n" + t), codes("lossy")
    ),
    Mutation(
        "a think block in another form", in_prose(lambda t: f"<think>hm</think>{t}"), codes("lossy")
    ),
    Mutation(
        "words before a thought",
        in_prose(lambda t: f"So: <think>\nhm\n</think>\n\n{t}"),
        codes("structured", "inverse"),
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
