"""Comparison of samples with token ids in the log.

The recorded ids are made with `transformers` alone, as a server makes them: the template's
rendering of the messages with a generation prompt, tokenised, and the tokens of the answer.
"""

import json

import pytest
from support.runs.builds import build, lines

from builder import cli
from builder.qwen3.tokenizer import load

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "wc",
            "description": "Counts lines.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }
]
CALL = '<tool_call>\n{"name": "wc", "arguments": {"path": "notes.txt"}}\n</tool_call>'
ASKED = {"role": "user", "content": "How long is notes.txt?"}
CALLED = {
    "role": "assistant",
    "content": "I count.",
    "tool_calls": [
        {
            "id": "c",
            "type": "function",
            "function": {"name": "wc", "arguments": '{"path": "notes.txt"}'},
        }
    ],
}
COUNTED = {"role": "tool", "tool_call_id": "c", "content": "12"}
ENDED = {"role": "assistant", "content": "Twelve lines."}


@pytest.fixture(scope="module")
def tokenizer():
    return load().tokenizer


def prompt_ids(tokenizer, messages, *, thinking=False, tools=TOOLS):
    served = [dict(one) for one in messages]
    for one in served:
        if "tool_calls" in one:
            function = {"name": "wc", "arguments": {"path": "notes.txt"}}
            one["tool_calls"] = [{"type": "function", "function": function}]
    text = tokenizer.apply_chat_template(
        served, tools=tools, tokenize=False, add_generation_prompt=True, enable_thinking=thinking
    )
    return ids_of(tokenizer, text)


def ids_of(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False)


def exchange(messages, answer, finish, prompt, ids):
    """Returns a captured exchange in the form of vLLM's `return_token_ids`."""
    choice = {"index": 0, "message": answer, "finish_reason": finish, "token_ids": ids}
    return {
        "request": {"model": "Qwen/Qwen3-4B", "messages": messages, "tools": TOOLS},
        "response": {
            "object": "chat.completion", "model": "Qwen/Qwen3-4B", "choices": [choice],
            "prompt_token_ids": prompt,
        },
    }  # fmt: skip


def built(folder, rows, *options):
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert build(folder / "out", "--workers", 1, *options, inputs=[log]) == 0
    return [row for path in sorted((folder / "out/meta").glob("*.jsonl")) for row in lines(path)]


def capture(tokenizer, *, first="I count.\n" + CALL, last="Twelve lines.", thinking=False):
    """Returns a session of two exchanges in which the model gave these texts."""
    asked, again = [ASKED], [ASKED, CALLED, COUNTED]
    return [
        exchange(
            asked, CALLED, "tool_calls", prompt_ids(tokenizer, asked, thinking=thinking),
            ids_of(tokenizer, first + "<|im_end|>"),
        ),
        exchange(
            again, ENDED, "stop", prompt_ids(tokenizer, again, thinking=thinking),
            ids_of(tokenizer, last + "<|im_end|>"),
        ),
    ]  # fmt: skip


def test_the_tokens_of_a_server_are_equal(tmp_path, tokenizer, capsys):
    (meta,) = built(tmp_path, capture(tokenizer))
    assert meta["tokens_recorded"] == "equal"
    assert "tokens_difference" not in meta
    out = tmp_path / "shown"
    assert cli.main(["build", str(tmp_path / "log.jsonl"), "-o", str(out), "--workers", "1"]) == 0
    assert "tokens recorded in the log: those of 1 of 1 sample are equal" in capsys.readouterr().out
    assert "exactly equal" in (out / "README.md").read_text()


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"first": "I count.\n\n" + CALL}, "whitespace"),
        ({"first": "<think>\nHm.\n</think>\n\nI count.\n" + CALL}, "thought"),
        ({"first": "I count.\n" + CALL.replace('": "', '":"')}, "call"),
        ({"last": "Thirteen lines."}, "text"),
        ({"last": "Twelve lines. Enough"}, "text"),
        ({"last": "Twelve"}, "text"),
        ({"thinking": True}, "thought"),
    ],
)
def test_causes(tmp_path, tokenizer, changed, cause):
    (meta,) = built(tmp_path, capture(tokenizer, **changed))
    assert meta["tokens_recorded"].startswith("differ at ")
    assert meta["tokens_difference"]["cause"] == cause


def test_retokenised(tmp_path, tokenizer):
    rows = capture(tokenizer)
    choice = rows[1]["response"]["choices"][0]
    choice["token_ids"] = [one for part in ("T", "wel", "ve", " lines", ".", "<|im_end|>")
                           for one in ids_of(tokenizer, part)]  # fmt: skip
    (meta,) = built(tmp_path, rows)
    assert meta["tokens_difference"]["cause"] == "retokenised"


def test_another_tokenizer(tmp_path, tokenizer):
    rows = capture(tokenizer)
    rows[1]["response"]["prompt_token_ids"] = [3, 4, 5]
    (meta,) = built(tmp_path, rows)
    assert meta["tokens_recorded"] == "differ at 0"
    assert meta["tokens_difference"]["cause"] == "tokenizer"


def test_a_redacted_secret_is_not_shown(tmp_path, tokenizer):
    secret = "ghp_" + "Zx7Kq9Lm2Np4Rs6Tv8Wy0AbCdEfGhJkLmNpQ"
    rows = capture(tokenizer, last=f"The token is {secret}.")
    rows[1]["response"]["choices"][0]["message"] = {**ENDED, "content": f"The token is {secret}."}
    (meta,) = built(tmp_path, rows)
    assert meta["tokens_difference"]["cause"] == "redacted"
    assert meta["tokens_difference"]["recorded"] == ""


@pytest.mark.quick(2)
@pytest.mark.parametrize("bad", [[1, "2"], "12", [True], [-1], [1 << 40], {}, [None]])
def test_ids_that_are_none_are_not_recorded(tmp_path, tokenizer, bad):
    rows = capture(tokenizer)
    for row in rows:
        row["response"]["choices"][0]["token_ids"] = bad
    (meta,) = built(tmp_path, rows)
    assert "tokens_recorded" not in meta


def test_a_rollout_of_verifiers(tmp_path, tokenizer):
    whole = prompt_ids(tokenizer, [ASKED, CALLED, COUNTED])
    first = prompt_ids(tokenizer, [ASKED], thinking=True)
    given = ids_of(tokenizer, "I count.\n" + CALL + "<|im_end|>")
    between = whole[len(first) + len(given) :]
    tail = between.index(ids_of(tokenizer, "assistant")[0]) - 1
    last = ids_of(tokenizer, "Twelve lines.<|im_end|>")

    def node(message, ids, parent=None, prompt=0):
        sampled = message["role"] == "assistant"
        mask = [sampled and at >= prompt for at in range(len(ids))]
        place = {} if parent is None else {"parent": parent}
        return {**place, "message": message, "sampled": sampled, "token_ids": ids, "mask": mask}

    begins = len(first) - 3  # <|im_start|>, assistant, newline
    call = {"id": "c", "type": "function", "name": "wc", "arguments": '{"path": "notes.txt"}'}
    nodes = [
        node(ASKED, first[:begins]),
        node({**CALLED, "tool_calls": [call]}, first[begins:] + given, 0, 3),
        node(COUNTED, between[:tail], 1),
        node(ENDED, between[tail:] + last, 2, len(between) - tail),
    ]
    tools = [{"type": "function", **TOOLS[0]["function"]}]
    trace = {"id": "t", "version": 1, "task": {}, "tools": tools, "nodes": nodes}
    (meta,) = built(tmp_path, [trace])
    assert meta["format"] == "verifiers"
    assert meta["tokens_recorded"] == "equal"
