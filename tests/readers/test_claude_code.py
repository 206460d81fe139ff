"""Claude Code: digests of numbers, refusals, files next to sessions; sessions are golden cases."""

import pytest

from builder.conversation import Ignored, Text, ToolResult
from builder.readers import recognise
from builder.readers.agents.claude_code.lines import mark_result
from builder.readers.agents.claude_code.reader import READER
from builder.readers.agents.claude_code.requests import digest_text
from builder.readers.agents.gemini_cli import READER as GEMINI
from builder.sources.source import Source


@pytest.mark.parametrize(
    ("value", "written"),  # by JSON.stringify(JSON.parse(…)) of Node 20
    [
        (0.1, "0.1"), (123.456, "123.456"), (-0.0, "0"), (3.0, "3"), (10, "10"),
        ("number 1e-07", '"number 1e-07"'),
    ],
)  # fmt: skip
def test_whole_numbers_are_written_as_integers(value, written):
    assert digest_text({"b": [value], "a": None}) == f'{{"a":null,"b":[{written}]}}'


@pytest.mark.parametrize(
    "name",
    [
        "p/s/subagents/agent-a1.meta.json",
        "p/s/tool-results/toolu_1.txt",
        "p/s/custom-title.json",
    ],
)
def test_files_next_to_a_session_are_known_by_name(name):
    source = Source(name, data=b'{"agentType": "general"}')
    assert list(recognise(source)) == ["claude-code"]
    assert list(READER.read(source)) == [Ignored("session_file", source.records_read)]


@pytest.mark.parametrize("name", ["tmp/h/.project_root", "tmp/h/tool-outputs/s/run_1.txt"])
def test_files_next_to_sessions_of_gemini_cli_are_known_by_name(name):
    source = Source(name, data=b"/home/me/project\n")
    assert list(recognise(source)) == ["gemini-cli"]
    assert list(GEMINI.read(source)) == [Ignored("session_file", source.records_read)]


@pytest.mark.parametrize(
    ("answer", "denied"),
    [
        ("The user doesn't want to proceed with this tool use. The tool use was", True),
        ("Permission to use Bash has been denied.", True),
        ("Permission for this action has been denied. Reason: it deletes", True),
        ("Claude requested permissions to use WebSearch, but you haven't granted it yet.", True),
        ("This command requires approval", True),
        ("This Bash command contains multiple operations. The following part requires", True),
        ("ls in '~' was blocked. For security, Claude Code may only list files in", True),
        ("Exit code 1\nThis command requires approval", False),
        ("bash: permission denied", False),
    ],
)
def test_a_refusal_is_recognised_by_the_words_of_the_program(answer, denied):
    result = mark_result(ToolResult((Text(answer),), "1", None, is_error=True))
    assert (result.is_denied, result.is_error) == (denied, True)
