"""JSON is read exactly; the oracle is the standard library."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.conversations.strategies import MANY, json_values

from builder.jsonio import MAX_DEPTH, JsonFault, depth, dumps_compact, loads, quoted
from builder.sample import Sample

DIGITS = st.text("0123456789", min_size=1, max_size=30).map(lambda text: text.lstrip("0") or "0")
numbers = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    DIGITS,
    st.sampled_from(["", ".5", ".1234567890123456789", ".0000000000000000000001"]),
    st.sampled_from(["", "e5", "E-07", "e+0000000000000000000000012"]),
)
neighbour = st.sampled_from(
    ["", " ", "id ", "-", "+", ".", "e", ",", ":", "[", "\\n", "\\u0031", "é"]
)
in_text = st.builds('"{}{}{}"'.format, neighbour, DIGITS, neighbour)
documents = st.recursive(
    st.one_of(numbers, in_text, json_values.map(json.dumps)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: "[" + ",\n ".join(items) + "]"),
        st.lists(st.tuples(in_text, inner), max_size=4).map(
            lambda items: "{" + ",".join(f"{key}:{value}" for key, value in items) + "}"
        ),
    ),
    max_leaves=8,
)


@MANY
@given(documents)
def test_json_is_read_as_the_standard_library_reads_it(text):
    """Numbers are never rounded; 1, 1.0 and different orders of keys are distinguished."""
    assert repr(loads(text)) == repr(loads(text.encode("utf-8"))) == repr(json.loads(text))


@pytest.mark.parametrize(
    "number",
    [
        "9223372036854775807", "9223372036854775808", "-9223372036854775808",
        "-9223372036854775809", "9999999999999999999", "-9999999999999999999",
        "18446744073709551615", "18446744073709551616", "-18446744073709551616",
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["{}", "[{}]", '{{"a":{}}}', "[0,{}]", "[0, {}]", "[\n{}]"])
def test_integers_around_64_bits_are_exact(number, form):
    text = form.format(number)
    assert repr(loads(text)) == repr(json.loads(text))


def plain_depth(value):
    inside = list(value.values()) if isinstance(value, dict) else value
    return 1 + max(map(plain_depth, inside)) if isinstance(value, dict | list) and value else 0


@given(json_values)
def test_compact_text_has_the_same_value_without_spaces(value):
    text = dumps_compact(value)
    assert json.loads(text) == json.loads(json.dumps(value))
    if not any(mark in json.dumps(value) for mark in "."):  # numbers are written differently
        assert text == json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize(
    "text", ['{"é":[0.00001,1e-7,-1.5]}', "[123456789012345678901234567890]", '{"a":"\ud800"}']
)
def test_compact_text_is_that_of_javascript(text):
    assert dumps_compact(json.loads(text)) == text


@given(json_values)
def test_depth_is_counted_as_defined(value):
    assert depth(value) == plain_depth(value)


@pytest.mark.parametrize(
    ("opening", "closing", "levels"),
    [("[", "]", 1), ('{"a":', "}", 1), ('[1,{"a":', ',"b":2}]', 2)],
)
def test_nesting_beyond_the_limit_is_a_fault(opening, closing, levels):
    """Brackets in texts do not nest, however many there are."""
    times = MAX_DEPTH // levels
    fits = opening * times + '"' + "[{" * MAX_DEPTH + '"' + closing * times
    assert loads(fits) == json.loads(fits)
    with pytest.raises(JsonFault) as found:
        loads(f"[{fits}]")
    assert found.value.code == "too_deep"


@given(st.text(st.characters(exclude_categories=())))
def test_a_text_is_quoted_as_the_standard_library_quotes_it(text):
    try:
        meant = json.dumps(text, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        with pytest.raises(UnicodeEncodeError):
            quoted(text)
        return
    assert quoted(text) == meant


def test_every_character_is_quoted_as_the_standard_library_quotes_it():
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    assert quoted(text) == json.dumps(text, ensure_ascii=False).encode()


@given(st.lists(st.tuples(st.text(), st.text())), st.lists(json_values))
def test_the_line_of_a_sample_is_its_record(messages, tools):
    sample = Sample(tuple(messages), tuple(tools))
    meant = json.dumps(sample.record, ensure_ascii=False)
    try:
        data = meant.encode()
    except UnicodeEncodeError:
        with pytest.raises(UnicodeEncodeError):
            _ = sample.line
    else:
        assert sample.line == data
