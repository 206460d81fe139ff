"""Real logs read through a mapping give the messages that their own readers give."""

import pytest
import yaml
from support.logs.mapped import contents

from builder import Source
from builder.config import load_mapping
from builder.readers import readers
from builder.readers.mapping.read import mapped_reader

FUNCTION = {"name": "function.name", "arguments": "function.arguments", "id": "id"}
CHAT = {
    "role": "role",
    "roles": {"exit": "skip"},
    "text": "content",
    "calls": "tool_calls",
    "call": FUNCTION,
    "result": {"id": "tool_call_id"},
}
CALLS_IN_ANSWERS = {"role": "role", "text": "text", "calls": "calls"}
MAPPINGS = {
    "sharegpt/data__glaive_toolcall_en_demo.json": {
        "conversation": {"messages": "conversations", "tools": "tools"},
        "message": {
            "role": "from",
            "roles": {"function_call": "call"},
            "text": "value",
            "call": {"name": "json(value).name", "arguments": "json(value).arguments"},
        },
    },
    "tau-bench/historical_trajectories__gpt-4o-airline.json": {
        "conversation": {"messages": "traj", "id": "task_id"},
        "message": CHAT,
    },
    "xlam/data__test__original__sealtool.json": {
        "conversation": {
            "messages": "[{role: 'user', text: query}, {role: 'assistant', calls: answers}]"
        },
        "message": {**CALLS_IN_ANSWERS, "call": {"name": "tool", "arguments": "parameters"}},
    },
    "mini-swe-agent/generated_v2_toolcall.traj.json": {
        "conversation": {"messages": "messages"},
        "message": CHAT,
    },
    "atif/tests__golden__terminus_2__hello-world-timeout.trajectory.json": {
        "conversation": {"messages": "steps"},
        "message": {
            "role": "source",
            "roles": {"agent": "assistant"},
            "text": "message",
            "calls": "tool_calls",
            "call": {"name": "function_name", "arguments": "arguments", "id": "tool_call_id"},
            "results": "observation.results",
            "result": {"text": "content", "id": "source_call_id"},
        },
    },
}


@pytest.mark.parametrize("log", MAPPINGS)
def test_a_mapping_gives_what_the_reader_gives(shared, tmp_path, log):
    path = tmp_path / "mapping.yaml"
    path.write_text(yaml.safe_dump(MAPPINGS[log]))
    ours = mapped_reader(load_mapping(path)).read(Source(log, shared / "corpus" / log))
    name = log.partition("/")[0]
    theirs = readers()[name].read(Source(log, shared / "corpus" / log))
    assert contents(ours) == contents(theirs)
