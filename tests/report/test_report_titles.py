"""The titles of samples: the first words of a person, whatever a program wrote around them."""

import pytest

from builder.readers.agents import codex
from builder.readers.agents.claude_code import lines
from builder.readers.agents.qwen_code import _HOOK
from builder.readers.api import response_items as items
from builder.report.turns import pieces, words_of_person

ELEMENTS = {
    *lines._TAGS, "environment_details", "SYSTEM_NOTICE", "explicit_instructions",
    "file_content", "custom_instructions", "user_instructions", "userMemory", "editorContext",
    "reminderInstructions", "workspace_info", "attachments", "rules", "system",
}  # fmt: skip
WHOLE = (
    *lines._WHOLE, *lines.CUT_OFF, *items._HARNESS_PREFIXES,
    codex._SUMMARY_PREFIX, _HOOK,
)  # fmt: skip
SUMMARY = """This session is being continued from a previous conversation that ran out of context.

Summary:
1. Primary Request and Intent:
   - Fix the tests"""


@pytest.mark.parametrize("name", sorted(ELEMENTS))
def test_what_readers_know_as_inserted_elements_is_no_title(name):
    element = f"<{name}>\nread this\n</{name}>"
    assert words_of_person([element, "Fix it"]) == "Fix it"
    assert words_of_person([f"{element}\n\nFix it"]) == "Fix it"
    assert words_of_person([f"Fix it\n\n{element}"]) == "Fix it"


@pytest.mark.parametrize("beginning", WHOLE)
def test_what_readers_know_as_messages_of_a_program_is_no_title(beginning):
    assert words_of_person([f"{beginning} and more", "Fix it"]) == "Fix it"


@pytest.mark.parametrize(
    "wrapper",
    ["user_query", "userRequest", "USER_REQUEST", "user_message", "task", "feedback", "answer"],
)
def test_tags_around_the_words_of_a_person_are_left_out(wrapper):
    assert words_of_person([f"<{wrapper}>\nFix it\n</{wrapper}>"]) == "Fix it"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("[image] [Image #1] Add a margin", "Add a margin"),
        ("[image]", "[image]"),
        ("<b>bold</b> words", "<b>bold</b> words"),
        ("Use <MyButton/> and <div>x</div>", "Use <MyButton/> and <div>x</div>"),
        ("The following is an <EPHEMERAL_MESSAGE>\nx\n</EPHEMERAL_MESSAGE>\nGo", "Go"),
        ("# AGENTS.md instructions\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>\nGo", "Go"),
        (SUMMARY, "Fix the tests"),
    ],
)  # fmt: skip
def test_titles(text, title):
    assert words_of_person([text]) == title


def test_the_page_of_a_sample_folds_no_words_of_a_person():
    text = "<context>\nParis is in France.\n</context>\nWhere is it?"
    assert [name for name, _ in pieces(text)] == [""]
