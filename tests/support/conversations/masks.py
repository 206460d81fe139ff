"""Samples in which the trained text of trainers differs."""

from builder.conversation import Json
from builder.sample import Sample

CALL = '<tool_call>\n{"name": "wc", "arguments": {"path": "a"}}\n</tool_call>'


TOOL: Json = {"type": "function", "function": {"name": "wc", "parameters": {}}}


NONE = "<think>\n\n</think>\n\n"


PLAIN = Sample(
    (
        ("user", "How long?"),
        ("assistant", CALL),
        ("user", "<tool_response>\n12\n</tool_response>"),
        ("assistant", "Twelve."),
    ),
    (TOOL,),
)


THOUGHTS = Sample(
    (
        ("system", "Be brief."),
        ("user", "How long?"),
        ("assistant", f"<think>\nI count.\n</think>\n\n{CALL}"),
        ("user", "<tool_response>\n12\n</tool_response>"),
        ("assistant", "<think>\nSo.\n</think>\n\nTwelve."),
    ),
    (TOOL,),
)


TWO_QUERIES = Sample((("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")))


CONTINUED = Sample((*PLAIN.messages[:3], ("user", "How long?"), ("assistant", "Twelve.")), (TOOL,))


SAMPLES = {
    "plain": PLAIN,
    "thoughts": THOUGHTS,
    "two queries": TWO_QUERIES,
    "continued": CONTINUED,
    "empty block": Sample((("user", "a"), ("assistant", f"{NONE}b"))),
}
