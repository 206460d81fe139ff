"""What vLLM's own parsers make of proven turns, and what our rules say that they make.

Needs the wheel of vLLM, which scripts/conformance.sh fetches, but nothing that vLLM depends on.
"""

from dataclasses import replace
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.templates.published import VLLM, package, text_of
from support.templates.targets import automatic, with_template
from support.templates.vllm_parsers import read
from support.templates.witnesses import calls_fault, is_same, replayed

from builder.conversation import Json
from builder.jsonio import dumps
from builder.qwen3.calls import XML_JSON, XML_PYTHON
from builder.qwen3.flat import flat_turn
from builder.qwen3.tokenizer import target_for
from builder.sample import Call, Turn

TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")
typed = st.sampled_from(TYPES).map(lambda name: {"type": name})
schemas = st.one_of(
    typed,
    st.lists(st.sampled_from(TYPES), min_size=1, max_size=3).map(lambda names: {"type": names}),
    st.lists(st.one_of(typed, st.just({"$ref": "#"})), min_size=1, max_size=3).map(
        lambda parts: {"anyOf": parts}
    ),
    st.just({}),
    st.just({"enum": ["a", 1, None]}),
)
values = st.one_of(
    st.sampled_from(
        ["12", " 12", "1_0", "true", "1", "None", "null", "[1]", '{"a": 1}', "nan", "1e2"]
    ),
    st.text("ab 1.<>\n", max_size=6),
    st.integers(-9, 9),
    st.sampled_from([1.5, 1e30, True, False, None, [], [1, "2"], {"a": None}]),
)


@pytest.fixture(scope="module", autouse=True)
def _installed():
    package(VLLM)
    if any(find_spec(name) is None for name in ("openai", "partial_json_parser", "regex")):
        pytest.skip("what its parsers import is not installed")


@pytest.fixture(scope="module", params=["JSON", "XML"])
def style(request):
    target = target_for("qwen3") if request.param == "JSON" else with_template(text_of("Qwen3.5"))
    return target.style


def tool(schema: Json) -> Json:
    parameters = {"type": "object", "properties": {"a": schema, "path": {"type": "string"}}}
    return {"type": "function", "function": {"name": "wc", "parameters": parameters}}


def parsed(style, text, schema):
    tokenizer = automatic().tokenizer
    return read(tokenizer, text, [tool(schema)], is_json=style.dialect.plain)


TURN = Turn("assistant", "I count.", "", (Call.of("wc", {"path": "12"}), Call.of("wc", {"a": 5})))
MEANT = [("wc", {"path": "12"}), ("wc", {"a": 5})]


def test_a_proven_turn_is_read_as_it_is_meant(style):
    content, calls = parsed(style, flat_turn(TURN, style)[1], {"type": "integer"})
    assert content.strip() == TURN.content
    assert calls_fault(MEANT, calls) is None


@pytest.mark.parametrize(("old", "new"), [("</tool_call>", ""), ("wc", "cw"), ("12", "13")])
def test_planted_damage_is_reported(style, old, new):
    text = flat_turn(TURN, style)[1].replace(old, new)
    fault = calls_fault(MEANT, parsed(style, text, {"type": "integer"})[1])
    # The parser of XML calls needs no closing tag.
    assert (fault is None) == (old == "</tool_call>" and not style.dialect.plain)


@pytest.mark.parametrize("content", ["I count.", " I count.\n", "two\n\n", ""])
def test_the_rule_for_replay_is_what_its_parser_does(style, content):
    turn = replace(TURN, content=content.strip() if style.trims != "none" else content)
    found, _ = parsed(style, flat_turn(turn, style)[1], {"type": "integer"})
    assert replayed("vllm", turn, style).content == found


@given(values, schemas)
def test_a_call_is_kept_only_if_its_parser_gives_it_back(value, schema):
    """Both ways for texts: those that are lost to vLLM alone are lost by our reading of it."""
    definitions = [tool(schema)]
    properties = {"wc": definitions[0]["function"]["parameters"]["properties"]}
    for dialect in (XML_JSON, XML_PYTHON):
        loss = dialect.loss("wc", {"a": value}, properties)
        if loss is not None:
            continue
        text = dialect.write(Call.of("wc", {"a": value}))
        _, calls = read(automatic().tokenizer, text, definitions, is_json=False)
        assert [name for name, _ in calls] == ["wc"], text
        assert is_same(calls[0][1], {"a": value}), dumps([text, schema])
