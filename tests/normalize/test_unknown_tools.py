"""A call of a tool that does not exist, as the program's own result says, is not to be learnt."""

import pytest
from support.conversations.messages import calls, normalised, reply, results, user, visible

from builder.conversation import Context, Conversation, Data, Message, Text, ToolResult
from builder.normalize.options import NormalizeOptions
from builder.normalize.tool_use import ToolUse
from builder.readers.toolkit.made_up import says_unknown

STATEMENTS = (
    "<tool_use_error>Error: No such tool available: @</tool_use_error>",  # Claude Code
    "No such tool available: @. @ exists but is not enabled in this context.",
    "Error: @ is not a valid tool, try one of [a, b].",  # LangGraph
    "@ is not a valid tool, try one of [a].",
    "Unknown tool @, should be one of: a, b.",  # smolagents
    "unsupported call: @",  # Codex
    "unsupported custom tool call: @",
    'Tool "@" not found in registry.',  # Gemini CLI, Qwen Code
    'Tool "@" not found. Did you mean one of: "a"?',
    "Tool @ not found",  # Pi, Continue
    "tool not found: @",  # Crush
    "Tool '@' does not exist. Available tools that can be called are bash",  # Copilot CLI
    "Error: Not found: @. Only request exact tool names from the Deferred tools list",  # Droid
    "Failed to parse arguments for tool `@`: Tool not found: @\n\nYour original arguments:\n{}",
    '<system>ERROR: Tool execution failed.</system>\nTool "@" not found',  # Kimi Code
    # Mistral Vibe
    r'{"result":{"type":"error","error":{"message":"unsupported top-level tool \"@\""}}}',
    # Cline
    """[{"error":"Tool call @ was rejected: Error: Model tried to call unavailable tool '@'."}]""",
    "Model tried to call unavailable tool '@'. Available tools: a.",  # Vercel AI SDK
    "Unknown tool name: '@'. Available tools: 'get_file'\n\nFix the errors and try again.",
    'Error: tool "@" does not exist',
    "{'error': 'Unknown tool: @'}",
    "Tool @ is not registered. (arguments: {}). Please check the tool name",  # OpenHands
    "No tool named '@' exists",
    "There is no tool called @",
    "MCP error -32602: Tool @ not found",
    "The tool @ doesn't exist.",
    # Roo Code
    'The tool execution failed with the following error:\n<error>\nUnknown tool "@". This tool...',
    "ToolNotFoundError: Tool '@' is not available",
    "ToolNotFound: @",
    '{"error":"tool_not_found","tool":"@"}',
    "-32002: Tool '@' not found",  # Goose
    'ERROR: Tool "@" was not contributed.',  # VS Code
    'The tool, "@" is not supported by the client',  # Kiro
    "You called the tool @, which does not exist",
    "Error: No handler for tool @",
    "Could not find tool '@'",
    "tool '@' is not in the list of allowed tools",
)
OTHER = (
    "File @ not found",
    "Error: file not found: @",
    "Error: the path of tool @ was not written",
    "@ not found",
    "error: unknown option @",
    "@: command not found",
    "src/a.ts:12: throw new Error(`No such tool: @`)",
    "ok\nUnknown tool: @",
    "Tool other not found",
    "Unknown tool: @-other",
    "Unknown tool: @.other",
    "Error: tool @ timed out",
    "Tool @ failed: no such file",
    "Error executing tool @: File does not exist.",
    "Tool @ ran; the file is not available",
)
NAMES = ("X", "mcp__a__b-c", "get.file")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", STATEMENTS)
def test_a_result_says_that_there_is_no_such_tool(text, name):
    assert says_unknown(text.replace("@", name), name)
    assert not says_unknown(text.replace("@", name), "another")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", OTHER)
def test_a_result_says_something_else(text, name):
    assert not says_unknown(text.replace("@", name), name)


def _refused(name, content):
    return Message("tool", (ToolResult((content,), name, is_error=True),))


TEXT = Text("Unknown tool: g")
VALUE = Data({"error": "Unknown tool: g"})


@pytest.mark.parametrize("content", [TEXT, VALUE])
@pytest.mark.parametrize("context", [None, Context("partial", ("tools",))])
def test_such_a_call_is_not_trained_and_defines_no_tool(content, context):
    turns = (user("hi"), calls("f"), results("f"), calls("g"), _refused("g", content), reply("b"))
    got = normalised(*turns, tools=None, context=context, untrained_turns="split")
    assert visible(got) == ["u hi", "a f()"]
    assert got.dropped == {1: "undefined_tool"}
    assert [tool["function"]["name"] for tool in got.dialogue.tools] == ["f"]
    kept = normalised(*turns, tools=None, context=context)
    assert [turn.trained for turn in kept.dialogue.turns if turn.role == "assistant"] == [
        *(True, False, True),
    ]
    assert [tool["function"]["name"] for tool in kept.dialogue.tools] == ["f"]


def test_a_call_that_was_refused_before_the_tool_came_defines_nothing():
    second = Message("assistant", calls("g").parts, turn="2")
    turns = (user("hi"), calls("g"), _refused("g", TEXT), second, results("g"), reply("b"))
    got = normalised(*turns, tools=None, untrained_turns="weight")
    trained = [turn.trained for turn in got.dialogue.turns if turn.role == "assistant"]
    assert trained == [False, True, True]
    use = ToolUse()
    conversation = Conversation(id="c", record="r", messages=turns[:3], tools=None)
    assert use.take(conversation, NormalizeOptions().supplied_tools)
    assert "calls" not in use.counts
