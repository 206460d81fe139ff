"""Properties of text with calls, results and literals, and of definitions in system texts."""

from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.conversations.strategies import json_values, plain, texts

from builder.conversation import Reasoning, Text, ToolCall
from builder.jsonio import JsonFault, dumps
from builder.readers.toolkit import literals as text_literals
from builder.readers.toolkit import tags

named = st.tuples(
    st.sampled_from(["f", "read file", "a.b"]), st.dictionaries(texts, json_values, max_size=3)
)


def normal(value):
    """Returns a value as in JSON: tuples become lists."""
    if isinstance(value, (list, tuple)):
        return [normal(item) for item in value]
    return {k: normal(v) for k, v in value.items()} if isinstance(value, dict) else value


@given(json_values)
def test_a_python_literal_is_read_as_its_value(value):
    assert text_literals.value(repr(value), Counter()) == value
    assert text_literals.value(repr((value, value)), Counter()) == normal((value, value))


@given(st.one_of(texts, st.text(alphabet="{}[]()'\",:\\x01 -.eTrueNone", max_size=40)))
def test_any_text_is_read_or_is_a_fault(text):
    try:
        text_literals.values(text, Counter())
    except JsonFault:
        return


def written(words, calls, thought=""):
    """Returns an assistant text as the chat template writes it."""
    blocks = [
        f'<tool_call>\n{{"name": {dumps(name)}, "arguments": {dumps(arguments)}}}\n</tool_call>'
        for name, arguments in calls
    ]
    before = f"<think>\n{thought}\n</think>\n\n" if thought else ""
    return before + "\n".join([words, *blocks] if words else blocks)


@given(plain.filter(str.strip), st.lists(named, max_size=3), st.sampled_from(["", "Hm.", "a\nb"]))
def test_calls_are_read_back_from_the_text(words, calls, thought):
    text = written(words, calls, thought)
    assume(text.count("</tool_call>") - len(calls) < tags.MAX_CLOSINGS)
    assume(not thought or not words.startswith("\n"))
    parts = tags.assistant_parts(text, Counter())
    wanted = [Reasoning(thought)] if thought else []
    wanted += [Text(words)] + [ToolCall(name, arguments) for name, arguments in calls]
    assert parts == wanted


@given(st.lists(texts, min_size=1, max_size=3))
def test_results_are_read_back_from_the_text(results):
    assume(not any("tool_response>" in result for result in results))
    text = "\n".join(f"<tool_response>\n{result}\n</tool_response>" for result in results)
    assert tags.responses(text) == results


@given(texts)
def test_text_without_tags_has_no_definitions(text):
    assume("<t" not in text and "</t" not in text)
    changes = Counter()
    assert tags.take_tools(text, changes) == (text, None)
    assert not changes


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>" * 50_000,
        "\n<tool_call>x" * 50_000 + "</tool_call>",
        '<tool_call>{"a' * 50_000 + "</tool_call>",
        "\n<think>x" * 50_000,
        "<tools></tools>" * 20_000,
        "<tools>[" * 50_000,
        "[" * 100_000,
        "{'a': " * 100_000,
        "-" * 100_000,
    ],
    ids=lambda text: text[:20].strip(),
)
def test_hostile_text_takes_linear_time(text):
    assert tags.assistant_parts(text, Counter())
    with pytest.raises(JsonFault):
        text_literals.values(text, Counter())
    try:
        tags.take_tools(text, Counter())
    except JsonFault:
        return


def test_prose_after_listed_definitions_is_text_of_the_system_prompt():
    sky = {"name": "sky", "parameters": {"type": "object", "properties": {}}}
    preamble = "You help with access to the following functions. Use them if required -"
    for listed in (dumps(sky), dumps([sky])):
        found = tags.take_listed_tools(f"{preamble}\n{listed}\n\nAnswer briefly.", Counter())
        assert found == ("You help\n\nAnswer briefly.", (sky,))
        with pytest.raises(JsonFault):
            tags.take_listed_tools(f'{preamble}\n{listed}\nThen {{"name"\n}}', Counter())
