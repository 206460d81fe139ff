"""Classification of behaviour: each rule, and which one takes precedence."""

import pytest

from builder.audit.failures import PATTERNS, is_error, pattern
from builder.sample import Call, Dialogue, Turn


def turns(script):
    """Returns the turns of a script of words.

    u: a user turn · a: an answer · ?: a question · c, cc: calls · r: responses · e: an error.
    """
    made = {
        "u": Turn("user", "x"),
        "a": Turn("assistant", "Done. Anything else? No."),
        "?": Turn("assistant", "Which **file**?"),
        "c": Turn("assistant", calls=(Call.of("f", {}),)),
        "cc": Turn("assistant", calls=(Call.of("f", {}), Call.of("g", {}))),
        "r": Turn("tool", responses=("fine",)),
        "rr": Turn("tool", responses=("fine", "fine")),
        "e": Turn("tool", responses=("Error: no such file",)),
        "re": Turn("tool", responses=("fine", "Error: no such file")),
    }
    return Dialogue(tuple(made[word] for word in script.split()))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("u a", "direct_answer"),
        ("u ? u a", "direct_answer"),
        ("u c r a", "single_call"),
        ("u c r a u c r a", "single_call"),
        ("u c", "single_call"),
        ("u c e a", "single_call"),
        ("u c r c r a", "chain"),
        ("u cc rr a", "parallel"),
        ("u c r cc rr a", "parallel"),
        ("u ? u c r a", "clarification"),
        ("u ? u cc rr a", "clarification"),
        ("u a u c r a", "single_call"),
        ("u c r ? u c r a", "single_call"),
        ("u c e c r a", "error_recovery"),
        ("u cc re c r a", "error_recovery"),
        ("u ? u c e c r a", "error_recovery"),
        ("u c e a u c r a", "error_recovery"),
    ],
)
def test_rules(script, expected):
    assert pattern(turns(script)) == expected
    assert expected in PATTERNS


@pytest.mark.parametrize(
    "text",
    [
        "Error: file not found",
        "<tool_use_error>String not found</tool_use_error>",
        "Traceback (most recent call last):\n  File",
        "ValueError: bad",
        '{"error": "no such user"}',
        '{"status": "error", "message": "x"}',
        '{"success": false}',
        "Exit code 1\nls: x",
        "bash: foo: command not found",
        "x" * 1000 + "\n[return code: 2]",
        "Permission denied",
        "<returncode>1</returncode>\n<output>\n</output>",
    ],
)
def test_errors(text):
    assert is_error(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        '{"error": null, "value": 1}',
        '{"errors": 0}',
        "errors are handled in handler.py",
        "Error handling is described in chapter 3",
        "def f():\n    raise ValueError",
        "exit code 0",
        "{broken",
        "[1, 2]",
    ],
)
def test_no_errors(text):
    assert not is_error(text)
