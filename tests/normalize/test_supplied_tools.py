"""Tests of tool definitions that the user supplies: those that their own request deferred."""

import pytest
from support.conversations.messages import calls, normalised, reply, results, user

_SUPPLIED = (
    {"name": "search", "description": "Finds.", "input_schema": {"type": "object"}},
    {"name": "later", "description": "Waits.", "input_schema": {}, "defer_loading": True},
)


@pytest.mark.parametrize(
    ("called", "names", "left_out"), [("search", ["search"], 1), ("later", ["search", "later"], 0)]
)
def test_a_deferred_tool_is_offered_where_it_is_called(called, names, left_out):
    messages = user("Go."), calls(called), results(called), reply("Done.")
    found = normalised(*messages, tools=None, supplied_tools=_SUPPLIED)
    assert [tool["function"]["name"] for tool in found.dialogue.tools] == names
    assert found.changes.get("deferred_tools", 0) == left_out
