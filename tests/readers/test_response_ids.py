"""The provider's id of a response, by which captures and logs are joined, is read from logs.

Golden files leave ids of responses out.
"""

import json
from pathlib import Path

import pytest

from builder.conversation import Conversation
from builder.readers import read_events, readers
from builder.sources.source import Source

HERE = Path(__file__).parent


def responses(reader, path):
    """Returns the ids of the answers of each conversation of a log."""
    events = read_events(readers()[reader], Source(path.name, path))
    found = [event for event in events if isinstance(event, Conversation)]
    return [
        [message.response for message in one.messages if message.role == "assistant"]
        for one in found
    ]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("codex/provenance-0.169", [["resp_1", "resp_2"]]),
        ("codex/interrupted-0.169", [["r", "r", "r", None, "r"]]),
        ("pi/plain-v3", [[None, "msg_1", None, None]]),
    ],
)
def test_the_log_states_the_id(case, expected):
    (log,) = (HERE / case / "input").iterdir()
    assert responses(case.partition("/")[0], log) == expected


def test_qwen_code_states_the_id_in_the_record_before_the_answer(tmp_path):
    common = {"sessionId": "s", "timestamp": "t", "cwd": "/w", "version": "0.24.4"}
    event = {"event.name": "qwen-code.api_response", "response_id": "chatcmpl-1"}
    other = {"event.name": "qwen-code.tool_call", "response_id": "not an answer's"}
    records = [
        {"type": "user", "message": {"role": "user", "parts": [{"text": "hi"}]}},
        {"type": "system", "subtype": "ui_telemetry", "systemPayload": {"uiEvent": event}},
        {"type": "assistant", "model": "m", "message": {"role": "model", "parts": [{"text": "a"}]}},
        {"type": "user", "message": {"role": "user", "parts": [{"text": "more"}]}},
        {"type": "system", "subtype": "ui_telemetry", "systemPayload": {"uiEvent": other}},
        {"type": "assistant", "model": "m", "message": {"role": "model", "parts": [{"text": "b"}]}},
    ]
    log = tmp_path / "s.jsonl"
    lines = [
        {"uuid": str(at), "parentUuid": str(at - 1) if at else None, **common, **record}
        for at, record in enumerate(records)
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert responses("qwen-code", log) == [["chatcmpl-1", None]]
