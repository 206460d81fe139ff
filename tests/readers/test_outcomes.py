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
