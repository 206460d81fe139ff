"""An outcome in the object of a run is that of its conversations, in files of one run too."""

import json

import pytest
from support.places import CASES

from builder.conversation import Conversation
from builder.readers import read_events, readers
from builder.sources.source import Source

RUNS = {
    "atif": "atif/plain/input/trajectory.json",
    "mini-swe-agent": "mini-swe-agent/tool_calls/input/run.traj.json",
    "swe-agent": "swe-agent/function_calling/input/run.traj",
}


@pytest.mark.parametrize("nested", [None, "info", "metrics"])
@pytest.mark.parametrize("name", RUNS)
def test_a_score_in_the_object_of_a_run_is_an_outcome(name, nested):
    path = CASES / RUNS[name]
    run = json.loads(path.read_text(encoding="utf-8"))
    holder = run if nested is None else run.setdefault(nested, {})
    holder |= {"reward": 0.25, "resolved": False}
    source = Source(path.name, data=json.dumps(run).encode())
    found = [e for e in read_events(readers()[name], source) if isinstance(e, Conversation)]
    runs = [conversation for conversation in found if not conversation.problems]
    assert runs
    for conversation in runs:
        assert conversation.outcome is not None
        assert conversation.outcome["reward"] == 0.25
        assert conversation.outcome["resolved"] is False


_EMPTY = dict.fromkeys(("tool_calls", "tool_call_id", "tool_name", "display_kind", "timestamp"), "")

RECORDS = {
    "hermes-agent": [
        {"role": role, "content": text, "finish_reason": "", "_model": "m", **_EMPTY}
        for role, text in (("user", "Plan."), ("assistant", "Done."))
    ],
    "vercel-ai-sdk": [
        {"id": "m1", "chatId": "A", "role": "user", "parts": [{"type": "text", "text": "Plan."}]},
        {
            "id": "m2",
            "chatId": "A",
            "role": "assistant",
            "parts": [{"type": "text", "text": "Ok."}],
        },
    ],
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_score_beside_the_last_message_is_an_outcome(name):
    *first, last = RECORDS[name]
    lines = [json.dumps(record) for record in (*first, {**last, "reward": 0.25})]
    source = Source("log.jsonl", data="\n".join(lines).encode() + b"\n")
    found = [e for e in read_events(readers()[name], source) if isinstance(e, Conversation)]
    assert [conversation.outcome for conversation in found] == [{"reward": 0.25}]
