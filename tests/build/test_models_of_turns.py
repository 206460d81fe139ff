"""`meta.model`: the models of the trained turns, per turn where the log says so."""

import json

import pytest
from support.runs.builds import build, lines

from builder.select.conditions import Condition, SelectOptions

GPT, OPUS = "gpt-5.2", "claude-opus-4-5"


def claude_code():
    def line(number, role, **message):
        parent = f"u{number - 1}" if number else None
        return {"type": role, "uuid": f"u{number}", "parentUuid": parent, "sessionId": "s",
                "timestamp": f"2026-01-01T00:00:0{number}Z", "version": "2.0.1",
                "message": {"role": role, **message}}  # fmt: skip

    def answer(number, model, text):
        content = [{"type": "text", "text": text}]
        return line(number, "assistant", id=f"m{number}", model=model, content=content)

    return [line(0, "user", content="First"), answer(1, GPT, "One"),
            line(2, "user", content="Second"), answer(3, OPUS, "Two")]  # fmt: skip


def openai_capture():
    def pair(model, messages, text):
        answer = {"index": 0, "finish_reason": "stop",
                  "message": {"role": "assistant", "content": text}}  # fmt: skip
        return {"request": {"model": model, "messages": messages},
                "response": {"object": "chat.completion", "choices": [answer]}}  # fmt: skip

    first = [{"role": "user", "content": "First"}]
    second = [
        *first,
        {"role": "assistant", "content": "One"},
        {"role": "user", "content": "Second"},
    ]
    return [pair(GPT, first, "One"), pair(OPUS, second, "Two")]


def langchain():
    def message(kind, text, model=None):
        meta = {"model_name": model} if model else {}
        return {"type": kind, "data": {"content": text, "type": kind, "response_metadata": meta}}

    return [[message("human", "First"), message("ai", "One", GPT),
             message("human", "Second"), message("ai", "Two", OPUS)]]  # fmt: skip


FORMS = [claude_code, openai_capture, langchain]


@pytest.mark.quick(3)
@pytest.mark.parametrize("log", FORMS, ids=lambda log: log.__name__)
def test_a_sample_names_every_model_that_gave_a_trained_turn(log, tmp_path):
    source, out = tmp_path / "log.jsonl", tmp_path / "out"
    source.write_text("".join(json.dumps(line) + "\n" for line in log()))
    assert build(out, inputs=[source]) == 0
    (meta,) = lines(out / "meta/train-00000-of-00001.jsonl")
    assert meta["models"] == [GPT, OPUS]

    config = tmp_path / "turns.yaml"
    config.write_text('normalize: {unit: turn}\nselect: {where: {model: {not: ["claude-*"]}}}\n')
    assert build(out, "-c", config, inputs=[source]) == 0
    (meta,) = lines(out / "meta/train-00000-of-00001.jsonl")
    assert (meta["model"], "models" in meta) == (GPT, False)


@pytest.mark.parametrize(
    ("condition", "passes"),
    [
        (Condition(none_of=("claude-*",)), False),
        (Condition(among=("gpt-*",)), False),  # the other turn's model is not in the list
        (Condition(among=("gpt-*", "claude-*")), True),
        (Condition(none_of=("glm-*",)), True),
    ],
)
def test_a_condition_on_the_model_holds_for_every_trained_turn(condition, passes):
    meta = {"model": OPUS, "models": [GPT, OPUS]}
    for key in ("model", "models"):
        assert (SelectOptions(where={key: condition}).refusal(meta) is None) == passes


def test_a_turn_without_a_model_meets_no_list_of_models():
    options = SelectOptions(where={"model": Condition(among=("gpt-*",))})
    assert options.refusal({"model": GPT, "models": [None, GPT]}) == "select_model"
