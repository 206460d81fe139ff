"""Damage to tool responses, and to roles and their order."""

from __future__ import annotations

import re

from damage.edits import (
    ORDER,
    PAIRS,
    Damage,
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

KINDS: tuple[Damage, ...] = (
    # Tool responses.
    Damage("newline after </tool_response>", in_response(lambda t: t + "\n"), PAIRS),
    Damage("newline before <tool_response>", in_response(lambda t: "\n" + t), PAIRS),
    Damage("words after </tool_response>", in_response(lambda t: t + "\nPlease hurry."), PAIRS),
    Damage(
        "newline after <tool_response> lost",
        in_response(lambda t: re.sub(r"<tool_response>\n(?=[^\n])", "<tool_response>", t, count=1)),
        PAIRS,
    ),
    Damage(
        "newline before </tool_response> lost",
        in_response(
            lambda t: re.sub(r"([^\n])\n</tool_response>", r"\1</tool_response>", t, count=1)
        ),
        PAIRS,
    ),
    Damage(
        "newline between responses lost",
        in_response(swap("</tool_response>\n<tool_response>", "</tool_response><tool_response>")),
        PAIRS,
    ),
    Damage(
        "blank line between responses",
        in_response(
            swap("</tool_response>\n<tool_response>", "</tool_response>\n\n<tool_response>")
        ),
        PAIRS,
    ),
    Damage(
        "response without tags",
        in_response(lambda t: t.replace("<tool_response>\n", "").replace("\n</tool_response>", "")),
        codes("pairing", "order"),
    ),
    Damage(
        "response twice",
        in_response(lambda t: f"{t}\n<tool_response>\nagain\n</tool_response>"),
        PAIRS,
    ),
    Damage(
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
    Damage("response turn lost", in_messages(without(is_response)), ORDER | PAIRS),
    Damage("response turn split", in_messages(split_response_turn), codes("order", "pairing")),
    Damage(
        "</tool_response> in a response",
        in_response(
            lambda t: t.replace("\n</tool_response>", " </tool_response> x\n</tool_response>", 1)
        ),
        PAIRS,
    ),
    Damage(
        "response forged in a response",
        in_response(
            lambda t: t.replace(
                "\n</tool_response>", "\n</tool_response>\n<tool_response>\nno\n</tool_response>", 1
            )
        ),
        PAIRS,
    ),
    Damage("response of role tool", role_of_responses("tool"), ORDER),
    Damage("response of role function", role_of_responses("function"), ORDER),
    Damage("response before its call", in_messages(swapped_turns), codes("order", "pairing")),
    Damage("call turn lost", in_messages(without(asks)), codes("order", "pairing")),
    # Roles and their order.
    Damage("system after the first turn", in_messages(late_system), ORDER),
    Damage(
        "role developer",
        in_messages(lambda m: [{"role": "developer", "content": "Be brief."}, *m]),
        ORDER,
    ),
    Damage(
        "role with a capital",
        in_messages(lambda m: [*m[:-1], {**m[-1], "role": "Assistant"}]),
        ORDER,
    ),
    Damage("roles of ShareGPT", in_messages(lambda m: [*m[:-1], {**m[-1], "role": "gpt"}]), ORDER),
    Damage(
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
    Damage(
        "two assistant turns",
        in_messages(lambda m: [*m, {"role": "assistant", "content": "Also."}]),
        ORDER,
    ),
    Damage("answer lost", in_messages(lambda m: m[:-1]), ORDER),
    Damage("first query lost", in_messages(without(lambda m: m["role"] == "user")), ORDER),
    Damage("empty answer", in_messages(lambda m: [*m[:-1], {**m[-1], "content": ""}]), ORDER),
    Damage("blank query", in_query(lambda _: " \n"), ORDER),
    Damage("no messages", in_messages(lambda _: []), ORDER),
)
