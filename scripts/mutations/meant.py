"""Mutations that leave a well-formed sample, but not the intended one."""

from __future__ import annotations

import html
import json

from mutations.edits import (
    OTHER,
    Edits,
    Mutation,
    asks,
    first_exchange,
    found_calls,
    in_answer,
    in_arguments,
    in_function,
    in_message,
    in_messages,
    in_prose,
    in_query,
    in_response,
    in_tools,
    in_value,
    inside,
    is_whole,
    kinds,
    nulls,
    reordered,
    string_edit,
    swapped_responses,
    without,
)

EDITS: Edits = {
    (in_response, OTHER): {
        "swapped responses": swapped_responses,
        "response cut": inside(lambda t: t[:-1]),
        "response stripped": inside(str.strip),
        "response HTML-escaped": inside(html.escape),
        "CRLF in a response": inside(lambda t: t.replace("\n", "\r\n")),
    },
    (in_arguments, OTHER): {
        "arguments re-ordered": lambda a: json.dumps(reordered(json.loads(a)), ensure_ascii=False),
        "null in the arguments": lambda a: json.dumps(
            {**json.loads(a), "unit": None}, ensure_ascii=False
        ),
        "an argument dropped": lambda a: json.dumps(
            dict(list(json.loads(a).items())[1:]), ensure_ascii=False
        ),
    },
    (in_value, OTHER): {
        "a number that became a float": lambda v: float(v) if is_whole(v) else v,
        "a number that became text": lambda v: str(v) if is_whole(v) else v,
        "a number that lost a digit": lambda v: v // 10 if is_whole(v) else v,
        "a string that became a number": lambda v: 7 if isinstance(v, str) else v,
        "an argument double-escaped": string_edit(lambda t: t.replace("\n", "\\n")),
    },
    (in_prose, OTHER): {
        "an answer cut": lambda t: t[:-1] or None,
        "an answer stripped at its end": lambda t: t + " ",
    },
    (in_messages, OTHER): {
        "system text lost": without(lambda m: m["role"] == "system"),
        "system text made up": lambda m: (
            [{"role": "system", "content": "You are helpful."}, *m]
            if m[0]["role"] != "system"
            else None
        ),
        "later exchanges lost": first_exchange,
    },
    (in_function, OTHER): {
        "schema keys re-ordered": lambda f: {**f, "parameters": reordered(f.get("parameters", {}))},
        "null added to a schema": nulls,
        "description lost": lambda f: {k: v for k, v in f.items() if k != "description"},
        "required lost": lambda f: (
            {**f, "parameters": {k: v for k, v in f["parameters"].items() if k != "required"}}
            if "parameters" in f
            else None
        ),
    },
    (in_tools, OTHER): {
        "tools in another order": lambda tools: tools[::-1] if len(tools) > 1 else None,
        "a tool added": lambda tools: [*tools, {"type": "function", "function": {"name": "extra"}}],
        "strict added to a wrapper": lambda tools: [{**tools[0], "strict": None}, *tools[1:]],
    },
}
KINDS: tuple[Mutation, ...] = (
    *kinds(EDITS),
    Mutation(
        "calls swapped",
        in_answer(
            lambda t: (
                f"{t[: a.start()]}{b[0]}\n{a[0]}{t[b.end() :]}"
                if len(f := found_calls(t)) > 1 and (a := f[0])[0] != (b := f[1])[0]
                else None
            )
        ),
        OTHER,
    ),
    Mutation(
        "text of a call turn lost", in_message(asks, lambda t: t[t.index("<tool_call>") :]), OTHER
    ),
    Mutation(
        "mojibake",
        in_message(lambda m: not m["content"].isascii(), lambda t: t.encode().decode("latin-1")),
        OTHER | {"nfc"},
    ),
    Mutation("a zero-width space", in_query(lambda t: t[:1] + "\u200b" + t[1:]), OTHER),
)

UNWRITTEN = frozenset({"schema keys re-ordered", "strict added to a wrapper"})
"""Kinds that leave the bytes of a template which writes the definitions as XML."""
