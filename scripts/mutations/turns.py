"""Mutations to tool responses, and to roles and their order."""

from __future__ import annotations

import re

from mutations.edits import (
    ORDER,
    OTHER_FORM,
    PAIRS,
    Mutation,
    asks,
    codes,
    in_messages,
    in_query,
    in_response,
    is_response,
    late_system,
    role_of_responses,
    split_response_turn,
    swap,
    swapped_turns,
    without,
)

UNKNOWN_ROLE = codes("order", "format")
"""`format` if the turn has a weight, which only an assistant message may have."""

KINDS: tuple[Mutation, ...] = (
    # Tool responses.
    Mutation("newline after </tool_response>", in_response(lambda t: t + "\n"), PAIRS),
    Mutation("newline before <tool_response>", in_response(lambda t: "\n" + t), PAIRS),
    Mutation("words after </tool_response>", in_response(lambda t: t + "\nPlease hurry."), PAIRS),
    Mutation(
        "newline after <tool_response> lost",
        in_response(lambda t: re.sub(r"<tool_response>\n(?=[^\n])", "<tool_response>", t, count=1)),
        PAIRS,
    ),
    Mutation(
        "newline before </tool_response> lost",
        in_response(
            lambda t: re.sub(r"([^\n])\n</tool_response>", r"\1</tool_response>", t, count=1)
        ),
        PAIRS,
    ),
    Mutation(
        "newline between responses lost",
        in_response(swap("</tool_response>\n<tool_response>", "</tool_response><tool_response>")),
        PAIRS,
    ),
    Mutation(
        "blank line between responses",
        in_response(
            swap("</tool_response>\n<tool_response>", "</tool_response>\n\n<tool_response>")
        ),
        PAIRS,
    ),
    Mutation(
        "response without tags",
        in_response(lambda t: t.replace("<tool_response>\n", "").replace("\n</tool_response>", "")),
        codes("pairing", "order"),
    ),
    Mutation(
        "response twice",
        in_response(lambda t: f"{t}\n<tool_response>\nagain\n</tool_response>"),
        PAIRS,
    ),
    Mutation(
        "one of two responses lost",
        in_response(
            lambda t: (
                t[t.index("</tool_response>\n<tool_response>") + 17 :]
                if "</tool_response>\n<tool_response>" in t
                else None
            )
        ),
        PAIRS,
    ),
    Mutation("response turn lost", in_messages(without(is_response)), ORDER | PAIRS),
    Mutation("response turn split", in_messages(split_response_turn), codes("order", "pairing")),
    Mutation(
        "</tool_response> in a response",
        in_response(
            lambda t: t.replace("\n</tool_response>", " </tool_response> x\n</tool_response>", 1)
        ),
        PAIRS,
    ),
    Mutation(
        "response forged in a response",
        in_response(
            lambda t: t.replace(
                "\n</tool_response>", "\n</tool_response>\n<tool_response>\nno\n</tool_response>", 1
            )
        ),
        PAIRS,
    ),
    Mutation("response of role tool", role_of_responses("tool"), ORDER | OTHER_FORM),
    Mutation("response of role function", role_of_responses("function"), ORDER | OTHER_FORM),
    Mutation("response before its call", in_messages(swapped_turns), codes("order", "pairing")),
    Mutation("call turn lost", in_messages(without(asks)), codes("order", "pairing")),
    # Roles and their order.
    Mutation("system after the first turn", in_messages(late_system), ORDER),
    Mutation(
        "role developer",
        in_messages(lambda m: [{"role": "developer", "content": "Be brief."}, *m]),
        ORDER | OTHER_FORM,
    ),
    Mutation(
        "role with a capital",
        in_messages(lambda m: [*m[:-1], {**m[-1], "role": "Assistant"}]),
        UNKNOWN_ROLE | OTHER_FORM,
    ),
    Mutation(
        "roles of ShareGPT",
        in_messages(lambda m: [*m[:-1], {**m[-1], "role": "gpt"}]),
        UNKNOWN_ROLE | OTHER_FORM,
    ),
    Mutation(
        "two user turns",
        in_messages(
            lambda m: [
                *m[:-1],
                {"role": "user", "content": "One."},
                {"role": "user", "content": "Two."},
                m[-1],
            ]
        ),
        ORDER,
    ),
    Mutation(
        "two assistant turns",
        in_messages(lambda m: [*m, {"role": "assistant", "content": "Also."}]),
        ORDER,
    ),
    Mutation("answer lost", in_messages(lambda m: m[:-1]), ORDER),
    Mutation("first query lost", in_messages(without(lambda m: m["role"] == "user")), ORDER),
    Mutation("empty answer", in_messages(lambda m: [*m[:-1], {**m[-1], "content": ""}]), ORDER),
    Mutation("blank query", in_query(lambda _: " \n"), ORDER),
    Mutation("no messages", in_messages(lambda _: []), ORDER),
)
