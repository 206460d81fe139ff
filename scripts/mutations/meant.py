"""Mutations that leave a well-formed sample, but not the intended one."""

from __future__ import annotations

import html
import json

from mutations.edits import (
    OTHER,
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
    nulls,
    reordered,
    string_edit,
    swapped_responses,
    without,
)

KINDS: tuple[Mutation, ...] = (
    Mutation("swapped responses", in_response(swapped_responses), OTHER),
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
    Mutation("response cut", in_response(inside(lambda t: t[:-1])), OTHER),
    Mutation("response stripped", in_response(inside(str.strip)), OTHER),
    Mutation(
        "arguments re-ordered",
        in_arguments(lambda a: json.dumps(reordered(json.loads(a)), ensure_ascii=False)),
        OTHER,
    ),
    Mutation(
        "null in the arguments",
        in_arguments(lambda a: json.dumps({**json.loads(a), "unit": None}, ensure_ascii=False)),
        OTHER,
    ),
    Mutation(
        "a number that became a float", in_value(lambda v: float(v) if is_whole(v) else v), OTHER
    ),
    Mutation("a number that became text", in_value(lambda v: str(v) if is_whole(v) else v), OTHER),
    Mutation(
        "a number that lost a digit", in_value(lambda v: v // 10 if is_whole(v) else v), OTHER
    ),
    Mutation(
        "a string that became a number", in_value(lambda v: 7 if isinstance(v, str) else v), OTHER
    ),
    Mutation("response HTML-escaped", in_response(inside(html.escape)), OTHER),
    Mutation(
        "an argument double-escaped", in_value(string_edit(lambda t: t.replace("\n", "\\n"))), OTHER
    ),
    Mutation(
        "an argument dropped",
        in_arguments(
            lambda a: json.dumps(dict(list(json.loads(a).items())[1:]), ensure_ascii=False)
        ),
        OTHER,
    ),
    Mutation(
        "text of a call turn lost", in_message(asks, lambda t: t[t.index("<tool_call>") :]), OTHER
    ),
    Mutation("an answer cut", in_prose(lambda t: t[:-1] or None), OTHER),
    Mutation("an answer stripped at its end", in_prose(lambda t: t + " "), OTHER),
    Mutation(
        "mojibake",
        in_message(lambda m: not m["content"].isascii(), lambda t: t.encode().decode("latin-1")),
        OTHER | {"nfc"},
    ),
    Mutation("a zero-width space", in_query(lambda t: t[:1] + "\u200b" + t[1:]), OTHER),
    Mutation("CRLF in a response", in_response(inside(lambda t: t.replace("\n", "\r\n"))), OTHER),
    Mutation("system text lost", in_messages(without(lambda m: m["role"] == "system")), OTHER),
    Mutation(
        "system text made up",
        in_messages(
            lambda m: (
                [{"role": "system", "content": "You are helpful."}, *m]
                if m[0]["role"] != "system"
                else None
            )
        ),
        OTHER,
    ),
    Mutation("later exchanges lost", in_messages(first_exchange), OTHER),
    Mutation(
        "schema keys re-ordered",
        in_function(lambda f: {**f, "parameters": reordered(f.get("parameters", {}))}),
        OTHER,
    ),
    Mutation("null added to a schema", in_function(nulls), OTHER),
    Mutation(
        "description lost",
        in_function(lambda f: {k: v for k, v in f.items() if k != "description"}),
        OTHER,
    ),
    Mutation(
        "required lost",
        in_function(
            lambda f: (
                {**f, "parameters": {k: v for k, v in f["parameters"].items() if k != "required"}}
                if "parameters" in f
                else None
            )
        ),
        OTHER,
    ),
    Mutation(
        "tools in another order",
        in_tools(lambda tools: tools[::-1] if len(tools) > 1 else None),
        OTHER,
    ),
    Mutation(
        "a tool added",
        in_tools(lambda tools: [*tools, {"type": "function", "function": {"name": "extra"}}]),
        OTHER,
    ),
    Mutation(
        "strict added to a wrapper",
        in_tools(lambda tools: [{**tools[0], "strict": None}, *tools[1:]]),
        OTHER,
    ),
)

UNWRITTEN = frozenset({"schema keys re-ordered", "strict added to a wrapper"})
"""Kinds that leave the bytes of a template which writes the definitions as XML."""
