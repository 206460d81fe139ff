"""PrimeIntellect's `renderers`, a second implementation of the template in plain Python.

Needs the extra `conformance`; scripts/conformance.sh runs it on any machine.
"""

import json
from importlib import import_module
from importlib.util import find_spec

import jinja2
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.conversations.foreign import foreign, wrapped
from support.conversations.masks import NONE, SAMPLES
from support.conversations.strategies import MANY, fit
from support.places import DATA
from support.runs.builds import build
from support.templates.published import text_of
from support.templates.targets import ORIGINAL, with_template

from builder.dataset.forms import read_sample
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions
from builder.qwen3.flat import flatten, structured, to_dialogue
from builder.qwen3.render import is_response, render, spans

# Importing it here would take every run of the tests a second in each worker.
pytestmark = pytest.mark.skipif(
    find_spec("renderers") is None, reason="the extra `conformance` is not installed"
)


@pytest.fixture(scope="module")
def other(verifier):
    """Returns their renderer over the same tokenizer."""
    from renderers import qwen3

    return qwen3.Qwen3Renderer(verifier.target.tokenizer)


def rows(messages):
    return [{"role": role, "content": content} for role, content in messages]


def visible(other, target, messages, tools=None):
    return target.decode(other.render_ids(messages, tools=list(tools) if tools else None))


def sampled(other, target, messages, tools):
    """Returns the token ids that it attributes to the model, by run."""
    found = other.render(messages, tools=list(tools) or None)
    stretches, last = [], False
    for number, message in zip(found.token_ids, found.sampled_mask, strict=True):
        if message and not last:
            stretches.append([])
        if message:
            stretches[-1].append(number)
        last = message
    return stretches


def agrees(other, verifier, sample, dialogue):
    """Checks flat and structured forms: bytes, tokens, trained text, and calls read back."""
    target = verifier.target
    text = target.render_sample(sample)
    flat = rows(sample.messages)
    ids = other.render_ids(flat, tools=list(sample.tools) or None)
    if any(warning.code == "border" for warning in verifier.check(sample).warnings):
        assert target.decode(ids) == text, "it tokenises the header separately"
        event("a border inside a token")
    else:
        assert ids == target.encode(text).ids
    assert visible(other, target, structured(dialogue), list(dialogue.tools) or None) == text
    rendering = render(sample.messages, sample.tools)
    message = [
        text[slice(*span)] for span in spans(rendering, target.generation_prompts["thinking"])
    ]
    found = sampled(other, target, flat, sample.tools)
    assert [target.decode(ids) for ids in found] == message
    answers = [turn for turn in dialogue.turns if turn.role == "assistant"]
    for turn, ids in zip(answers, found, strict=True):
        read = other.parse_response(ids)
        calls = [(call.name, call.arguments) for call in read.tool_calls]
        assert calls == [(call.name, call.arguments) for call in turn.calls]


@pytest.mark.parametrize("name", ["plain", "thoughts", "two queries", "continued"])
def test_handwritten_samples(other, verifier, name):
    sample = SAMPLES[name]
    agrees(other, verifier, sample, to_dialogue(sample))


def test_built_samples(other, verifier, tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("normalize: {control_tokens: neutralise, reasoning: keep}")
    assert build(tmp_path / "out", "-c", config, inputs=[DATA]) == 0
    path = tmp_path / "out" / "data" / "train-00000-of-00001.jsonl"
    for line in path.read_bytes().splitlines():
        sample = read_sample(json.loads(line))
        agrees(other, verifier, sample, to_dialogue(sample))


@MANY
@given(fit, st.sampled_from(["drop", "keep"]))
def test_random_samples(other, verifier, conversation, reasoning):
    options = NormalizeOptions(control_tokens="neutralise", reasoning=reasoning)
    dialogue = normalise(conversation, options).dialogue
    if dialogue is not None:
        agrees(other, verifier, flatten(dialogue), dialogue)


def reasons(messages):
    """Returns the known reasons why it may differ from the official template on these messages."""
    for role, content in messages:
        if role == "assistant" and content.count("</think>") > 1:
            yield "it splits at the first </think>, the template at the last"
        if role == "user" and is_response(content.strip()) and not is_response(content):
            yield "it ignores white space around tool responses, the template does not"


@MANY
@given(foreign, wrapped)
def test_any_messages(other, verifier, messages, tools):
    """For messages that no sample may contain: equal bytes, or a known difference."""
    target = verifier.target
    text = target.render(rows(messages), tools)
    message = text + "".join(content for _, content in messages)
    if any("\ud800" <= character <= "\udfff" for character in message):
        return  # lone surrogates cannot be tokenised
    if visible(other, target, rows(messages), tools) != target.decode(target.encode(text).ids):
        named = list(reasons(messages))
        assert named
        event(named[0])


QUERY = "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"
RESPONSES = (
    "<|im_end|>\n<|im_start|>user\n<tool_response>\nd\n</tool_response>\n<|im_end|>\n"
    "<|im_start|>assistant\n"
)
DIFFERENCES = {
    "two closing tags": (
        (("user", "a"), ("assistant", "<think>\nb</think>c</think>\n\nd")),
        f"{QUERY}<think>\nb\n</think>\n\nd<|im_end|>\n",
        f"{QUERY}<think>\nb\n</think>\n\nc</think>\n\nd<|im_end|>\n",
    ),
    "white space around tool responses": (
        (
            ("user", "a"),
            ("assistant", "<think>\nb\n</think>\n\nc"),
            ("user", "<tool_response>\nd\n</tool_response>\n"),
            ("assistant", "e"),
        ),
        f"{QUERY}c{RESPONSES}{NONE}e<|im_end|>\n",
        f"{QUERY}<think>\nb\n</think>\n\nc{RESPONSES}{NONE}e<|im_end|>\n",
    ),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_differences(other, verifier, name):
    """(messages, the official template's bytes, theirs); docs/parity.md sums them up."""
    messages, official, theirs = DIFFERENCES[name]
    assert verifier.target.render(rows(messages), []) == official
    assert visible(other, verifier.target, rows(messages)) == theirs
    assert list(reasons(messages))


def test_without_thinking_it_keeps_the_empty_block_of_earlier_turns(verifier):
    """Their documented deviation: generated text stays unchanged."""
    from renderers import configs, qwen3

    target = verifier.target
    config = configs.Qwen3RendererConfig(enable_thinking=False)
    other = qwen3.Qwen3Renderer(target.tokenizer, config)
    messages = rows(SAMPLES["two queries"].messages)
    official = target.render(messages, [], enable_thinking=False)
    assert official.count(NONE) == 1
    assert visible(other, target, messages).count(NONE) == 2
    assert visible(other, target, messages).replace(NONE, "") == official.replace(NONE, "")


def test_a_list_of_texts_is_accepted_there_and_dropped_by_the_template(other, verifier):
    """The revised text of the template writes nothing at all; the original one raises."""
    messages = [{"role": "user", "content": [{"type": "text", "text": "a"}]}]
    messages += rows([("assistant", "b")])
    assert visible(other, verifier.target, messages) == f"{QUERY}{NONE}b<|im_end|>\n"
    dropped = "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
    assert verifier.target.render(messages, []) == dropped
    with pytest.raises(jinja2.UndefinedError):
        with_template(ORIGINAL).render(messages, [])


@pytest.fixture(scope="module", params=["Qwen3.5", "Qwen3.6", "Qwen3.8"])
def with_xml(request):
    """Returns a target with XML calls, and their renderer for it."""
    module = {"Qwen3.5": "qwen35", "Qwen3.6": "qwen36", "Qwen3.8": "qwen38"}[request.param]
    target = with_template(text_of(request.param))
    kind = f"Qwen{module.removeprefix('qwen')}Renderer"
    return target, getattr(import_module(f"renderers.{module}"), kind)(target.tokenizer)


@pytest.mark.slow
@MANY
@given(fit, st.sampled_from(["drop", "keep"]))
def test_targets_with_xml_calls(with_xml, conversation, reasoning):
    target, other = with_xml
    chosen = NormalizeOptions(control_tokens="neutralise", reasoning=reasoning, style=target.style)
    dialogue = normalise(conversation, chosen).dialogue
    if dialogue is None:
        event("rejected")
        return
    sample = flatten(dialogue, target.style)
    text = target.render_sample(sample)
    tools = list(dialogue.tools) or None
    for messages in (sample.rows, structured(dialogue, target.style)):
        assert target.decode(other.render_ids(messages, tools=tools)) == text
