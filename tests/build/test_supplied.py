"""Files of tools and system prompts that users pass: whatever plainly has what is needed."""

import json
from collections import Counter

import pytest

from builder.build.supplied import supplied_system, supplied_tools
from builder.normalize.tools import convert
from builder.paths import UserPath
from builder.problem import UsageError

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
TOOL = {"name": "search", "description": "Searches.", "parameters": SCHEMA}
FUNCTION = {"type": "function", "function": TOOL}
MESSAGES = [{"role": "user", "content": "Hi"}]


def written(folder, value, name="tools.json"):
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return [UserPath(str(path))]


@pytest.mark.parametrize(
    "value",
    [
        [FUNCTION],
        TOOL,
        {"model": "m", "messages": MESSAGES, "tools": [FUNCTION]},
        {"model": "m", "messages": MESSAGES, "functions": [TOOL]},
        {"request": {"body": {"model": "m", "tools": [FUNCTION]}}, "response": {}},
        {"toolConfig": {"tools": [{"toolSpec": {**TOOL, "inputSchema": {"json": SCHEMA}}}]}},
        {"tools": [{"functionDeclarations": [TOOL]}], "contents": []},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{**TOOL, "inputSchema": SCHEMA}]}},
        {"search": {"description": "Searches.", "parameters": SCHEMA}},
        f"{json.dumps(FUNCTION)}\n{json.dumps({**TOOL, 'name': 'fetch'})}\n",
    ],
)
def test_what_plainly_has_definitions_is_read(tmp_path, value):
    tools, captured = supplied_tools(written(tmp_path, value))
    names = [one["function"]["name"] for one in convert(tools, Counter())]
    assert names[0] == "search"
    assert not captured


def test_a_file_for_an_agent_needs_no_system_prompt(tmp_path):
    files = written(tmp_path, {"agent": "codex", "tools": [FUNCTION]})
    tools, (captured,) = supplied_tools(files)
    assert tools is None
    assert (captured.agent, captured.version, captured.tools) == ("codex", "", (FUNCTION,))
    with pytest.raises(UsageError, match="is a request or a list of tools"):
        supplied_system(files)


def test_what_an_agent_of_ones_own_sends_is_for_all_logs(tmp_path):
    files = written(tmp_path, {"agent": "mine", "system": "Be good.", "tools": [FUNCTION]})
    assert supplied_tools(files) == ((FUNCTION,), ())
    assert supplied_system(files) == ("Be good.", ())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (MESSAGES, "is no tool definition: expected a list of objects"),
        ([], "defines no tool"),
        ({"model": "m", "messages": MESSAGES, "tools": []}, "defines no tool"),
        ([TOOL, {"description": "no name"}], r"\[1\] is no tool definition"),
        ([TOOL, "search"], r"\[1\] is no tool definition"),
        ({"model": "m", "messages": MESSAGES}, "is no tool definition: expected"),
        ("not: json", "tools.*tools.json"),
    ],
)
def test_anything_else_is_named_with_what_is_expected(tmp_path, value, message):
    with pytest.raises(UsageError, match=message) as raised:
        supplied_tools(written(tmp_path, value))
    assert "\n" not in str(raised.value)


def test_a_request_is_no_system_prompt(tmp_path):
    with pytest.raises(UsageError, match="expected the text of the system prompt"):
        supplied_system(written(tmp_path, {"messages": MESSAGES}, "system.txt"))
    text, _ = supplied_system(written(tmp_path, '{"you": "answer in JSON"}', "system.txt"))
    assert text == '{"you": "answer in JSON"}'
