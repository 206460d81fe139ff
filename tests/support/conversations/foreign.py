"""Samples in the form that other programs write them, for properties of any dataset."""

from hypothesis import strategies as st

from support.conversations.strategies import json_values, texts

edges = st.sampled_from(
    ["<think>\nx\n</think>\n\n", "<tool_response>\n", "\n</tool_response>", "</think>", "\n", ""]
)


contents = st.builds(lambda a, b, c: a + b + c, edges, texts, edges)


foreign = st.lists(
    st.tuples(st.sampled_from(["system", "user", "assistant"]), contents), min_size=1, max_size=7
)


wrapped = st.lists(
    st.builds(
        lambda name, value: {
            "type": "function",
            "function": {"name": "n" + name, "parameters": value},
        },
        texts,
        json_values,
    ),
    max_size=2,
)
