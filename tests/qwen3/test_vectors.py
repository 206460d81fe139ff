"""External evidence: facts of other projects' test vectors; each test names its source."""

import hashlib
import json

import jinja2
import pytest
from support.templates.targets import ORIGINAL, with_template

from builder.qwen3.calls import ParseFault
from builder.qwen3.flat import split_answer
from builder.qwen3.render import render
from builder.qwen3.tokenizer import target_for

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Return the weather for a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
ASKED = [
    {"role": "system", "content": "You are concise."},
    {"role": "user", "content": "What is 2+2?"},
]
ANSWERED = {
    "role": "assistant",
    "reasoning_content": "Two plus two equals four.",
    "content": "Four.",
}


def ids_hash(text):
    ids = target_for("qwen3").encode(text).ids
    packed = json.dumps(ids, separators=(",", ":")).encode()
    return len(ids), hashlib.sha256(packed).hexdigest()


def test_golden_token_ids():
    """PrimeIntellect renderers, golden_renderer_outputs.json, case qwen3 (Qwen3-8B)."""
    prompt = target_for("qwen3").render(ASKED, [WEATHER], add_generation_prompt=True)
    assert ids_hash(prompt) == (
        158,
        "080aab54d0ee370f49c843eae30a493eabc252eca32ef5ecc0b3b1ddc72ae500",
    )
    done = target_for("qwen3").render([*ASKED, ANSWERED], [WEATHER])
    golden = (172, "0a3b9ecf2923febbe4f40a14cfdf1b293e7b2e3073230ddbf5e1f00914883109")
    assert ids_hash(done) == golden
    flat = "<think>\nTwo plus two equals four.\n</think>\n\nFour."
    messages = [*((item["role"], item["content"]) for item in ASKED), ("assistant", flat)]
    assert ids_hash(render(messages, [WEATHER]).text) == golden


def call(name, arguments):
    return f'<tool_call>\n{{"name": "{name}", "arguments": {json.dumps(arguments)}}}\n</tool_call>'


PARSED = {
    "one call (vLLM)": (call("get_weather", {"city": "SF"}), [("get_weather", {"city": "SF"})], ""),
    "a boolean stays one (vLLM 19056)": (
        call("final_answer", {"trigger": True}),
        [("final_answer", {"trigger": True})],
        "",
    ),
    "two calls (LLaMA-Factory)": (
        call("test_tool", {"foo": "bar", "size": 10})
        + "\n"
        + call("another_tool", {"foo": "job", "size": 2}),
        [("test_tool", {"foo": "bar", "size": 10}), ("another_tool", {"foo": "job", "size": 2})],
        "",
    ),
    "text and call": ("Sure.\n" + call("f", {"a": 1}), [("f", {"a": 1})], "Sure."),
}


@pytest.mark.parametrize("name", PARSED)
def test_calls_that_every_engine_parses(name):
    text, calls, words = PARSED[name]
    answer = split_answer(text)
    assert [(item.name, item.arguments) for item in answer.calls] == calls
    assert answer.content == words


REPORTED = {
    "unclosed at the end (vLLM accepts it)": '<tool_call>\n{"name": "f", "arguments": {}}',
    "broken JSON": '<tool_call>\n{"name": "f", "arguments": {}\n</tool_call>',
    "arguments as text (vLLM decodes once)": call("get_db_config", '{"param": "x"}'),
    "arguments no object": call("do_thing", "hello"),
    "no newlines (engines disagree)": '<tool_call>{"name": "f", "arguments": {}}</tool_call>',
    "cut inside the call (renderers)": 'Checking.\n<tool_call>\n{"name": "get',
    "an empty object (sglang)": "<tool_call>{}",
}


@pytest.mark.parametrize("name", REPORTED)
def test_faults_that_a_strict_builder_must_report(name):
    with pytest.raises(ParseFault):
        split_answer(REPORTED[name])


def test_published_scenarios_render_alike(shared):
    """Scenarios of PrimeIntellect renderers, as llama.cpp's copy of the template renders them.

    Where that raises (content null in the original text), so does ours.
    """
    path = shared / "vectors" / "parity_scenarios_rendered.json"
    target = with_template(ORIGINAL)
    compared = 0
    for scenario in json.loads(path.read_text(encoding="utf-8"))["scenarios"]:
        options = {"add_generation_prompt": True} if scenario["add_generation_prompt"] else {}
        for rendered in scenario["rendered"]:
            if "llamacpp__Qwen-Qwen3-0.6B" not in rendered["templates"]:
                continue
            compared += 1
            if rendered["text"].startswith("!!"):
                with pytest.raises(jinja2.UndefinedError):
                    target.render(scenario["messages"], scenario["tools"], **options)
                continue
            text = target.render(scenario["messages"], scenario["tools"], **options)
            assert text == rendered["text"], scenario["id"]
    assert compared == 27
