"""Strategies: random conversations full of text that breaks templates."""

from hypothesis import settings
from hypothesis import strategies as st

from builder.conversation import (
    Context,
    Conversation,
    Data,
    Media,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.qwen3.calls import ADDED_TOKENS

MANY = settings(max_examples=4 * settings().max_examples)
"""For the fundamental properties: 2,000 examples under the profile `long`."""


def pieces(draw, text):
    """Returns the text split at some places."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


HOSTILE = [
    *ADDED_TOKENS,
    "<tools>",
    "</tools>",
    "# Tools\n\nYou may call one or more functions",
    '{"name": "f", "arguments": {}}',
    "<think>\n\n</think>\n\n",
    "<tool_response>\n",
    "\n</tool_response>",
    "\n",
    "\n\n",
    "\r\n",
    "\\",
    '"',
    "\x00",
    "\u2028",
    "\ufeff",
    "e\u0301",
    "\u0338",
    ">",
    "<",
    "\U0001f600",
    "\ud83d",
    "\ude00",
    " ",
    "Zoë",
]
words = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=8)), max_size=5).map("".join)
plain = st.text(alphabet="abc d\n", max_size=12)
texts = st.one_of(plain, words)
good_names = st.sampled_from(["f", "g", "read file", "a.b/c"])
names = st.one_of(good_names, good_names, good_names, words)
ids = st.one_of(st.none(), st.sampled_from(["1", "2", "3"]))

json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(min_value=-(10**30), max_value=10**30),
        st.floats(allow_nan=False, allow_infinity=False),
        texts,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
objects = st.dictionaries(texts, json_values, max_size=3)
arguments = st.one_of(
    objects,
    st.sampled_from(["", "null", "{}", '{"a": 1}', '"{\\"a\\": 1}"', "[1]", "{"]),
    st.none(),
)
calls = st.builds(ToolCall, names, arguments, ids)
results = st.builds(
    ToolResult,
    st.lists(
        st.one_of(texts.map(Text), json_values.map(Data), st.just(Media("image"))), max_size=2
    ).map(tuple),
    ids,
    st.one_of(st.none(), names),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


untrained = st.sampled_from([None, None, None, "repeat", "inserted", "server_tool", "rewound"])
contexts = st.sampled_from([None, None, Context("proven"), Context("partial", ("history",))])


def _message(role, parts, turns):
    held = st.lists(parts, max_size=4).map(tuple)
    if role != "assistant":
        return st.builds(Message, st.just(role), held, turns)
    return st.builds(Message, st.just(role), held, turns, untrained, contexts)


turn_ids = st.one_of(st.none(), st.sampled_from(["t1", "t2", "t3"]))
text_part = st.builds(Text, texts, st.booleans())
messages = st.one_of(
    _message("system", texts.map(Text), st.none()),
    _message("developer", texts.map(Text), st.none()),
    _message("user", st.one_of(text_part, st.just(Media("image")), results), turn_ids),
    _message(
        "assistant",
        st.one_of(
            text_part,
            calls,
            texts.map(Reasoning),
            st.builds(Unparsed, texts, st.sampled_from(["bad", "bad_call", "server_tool"])),
        ),
        turn_ids,
    ),
    _message("tool", results, st.none()),
)


def _exchange(text, call_list, order, code):
    """Returns a turn with calls, and an answer for each call, in any order."""
    calls = tuple(
        ToolCall(call.name, call.arguments, str(number)) for number, call in enumerate(call_list)
    )
    answers = [
        Message("tool", (ToolResult((Text(f"r{call.id}" + text),), call.id),)) for call in calls
    ]
    order.shuffle(answers)
    return [Message("assistant", (Text(text), *calls), untrained=code), *answers]


def _talks(calls, codes=untrained):
    """Returns a query, then groups of related messages, then an answer."""
    exchanges = st.builds(
        _exchange,
        texts,
        st.lists(calls, min_size=1, max_size=3),
        st.randoms(use_true_random=False),
        codes,
    )
    asked = texts.map(lambda text: [Message("user", (Text("u" + text),))])
    answered = st.builds(
        lambda text, thought, code: [
            Message("assistant", (Reasoning(thought), Text("a" + text)), untrained=code)
        ],
        texts,
        texts,
        codes,
    )
    return st.lists(st.one_of(exchanges, asked, answered), max_size=6).map(
        lambda groups: [
            Message("user", (Text("begin"),)),
            *(message for group in groups for message in group),
            Message("assistant", (Text("end"),)),
        ]
    )


well_formed = _talks(calls)
fit = st.builds(
    lambda system, messages: Conversation(
        id="c",
        record="r",
        messages=(*(Message("system", (Text(text),)) for text in system), *messages),
        complete=True,
    ),
    st.lists(texts, max_size=1),
    _talks(st.builds(ToolCall, good_names, objects, ids), st.none()),
)
"""Hostile only in its texts, values and thoughts: almost all of them become samples."""
definitions = st.one_of(
    st.none(),
    st.lists(
        st.one_of(
            st.builds(lambda n, p: {"name": n, "parameters": p}, names, objects),
            st.builds(
                lambda n: {"type": "function", "function": {"name": n, "parameters": {}}}, names
            ),
            json_values,
        ),
        max_size=3,
    ).map(tuple),
)
conversations = st.builds(
    lambda m, tools, complete, recorded: Conversation(
        id="c", record="r", messages=tuple(m), tools=tools, complete=complete, recorded=recorded
    ),
    st.one_of(st.lists(messages, max_size=8), well_formed, well_formed, well_formed),
    definitions,
    st.booleans(),
    st.booleans(),
)
