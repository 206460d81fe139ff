"""Results are written as OpenHands' SDK sends them: long ones without their middle."""

import hashlib
import json

import pytest
from support.runs.builds import build, lines

NOTICE = (
    "<response clipped><NOTE>Due to the max output limit, only part of the full response has been "
    "shown to you.{}</NOTE>"
)


def event(kind, **fields):
    return {"kind": kind, "source": "agent", **fields}


def text(content):
    return {"type": "text", "text": content}


def observed(tmp_path, output, folder):
    """Returns the result of a command in the built sample."""
    observation = {
        "kind": "TerminalObservation",
        "content": [text(output)],
        "metadata": {"exit_code": 0},
        "full_output_save_dir": folder,
    }
    return built_result(tmp_path, observation)


def built_result(tmp_path, observation, **fields):
    """Returns the result with this observation in the built sample."""
    call = {
        "id": "c",
        "name": "terminal",
        "arguments": '{"command": "seq"}',
        "origin": "completion",
    }
    asked = {"role": "user", "content": [text("Count.")]}
    events = [
        event("SystemPromptEvent", id="1", system_prompt=text("Be brief."), tools=[]),
        {**event("MessageEvent", id="2", llm_message=asked), "source": "user"},
        event("ActionEvent", id="3", thought=[], tool_call_id="c", tool_call=call,
              llm_response_id="r"),
        event("ObservationEvent", id="4", observation=observation, tool_call_id="c", **fields),
        event("MessageEvent", id="5",
              llm_message={"role": "assistant", "content": [text("Done.")]}),
    ]  # fmt: skip
    source = tmp_path / "events.jsonl"
    source.write_text("".join(json.dumps(item) + "\n" for item in events))
    assert build(tmp_path / "out", inputs=[source]) == 0
    (row,) = (row for path in (tmp_path / "out/data").iterdir() for row in lines(path))
    content = row["messages"][3]["content"]
    return content.removeprefix("<tool_response>\n").removesuffix("\n</tool_response>")


@pytest.mark.parametrize("folder", [None, "/home/u/observations"])
def test_the_middle_of_a_long_output_is_replaced(tmp_path, folder):
    output = "".join(f"{number:09}\n" for number in range(3_100))
    ending = "\n[Command finished with exit code 0]"
    whole = output + ending
    # 29,887 characters in addition to the shorter notice, with one more at the beginning.
    assert len(NOTICE.format("")) == 113
    kept, tail = "", 14_943
    if folder:
        digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
        kept = (
            f" The complete output has been saved to {folder}/terminal_output_{digest}.txt - you"
            " can use other tools to view the full content (truncated part starts around line"
            " 1496)."
        )
        tail -= len(kept)
    found = observed(tmp_path, output, folder)
    assert found == whole[:14_944] + NOTICE.format(kept) + whole[-tail:]
    assert len(found) == 30_000


def test_a_shorter_output_is_kept_whole(tmp_path):
    output = "x" * 29_000
    assert observed(tmp_path, output, None) == output + "\n[Command finished with exit code 0]"


LONG = "".join(f"{number:09}\n" for number in range(6_000))
# 49,887 characters in addition to the notice, with one more at the beginning.
SENT = LONG[:24_944] + NOTICE.format("") + LONG[-24_943:]


@pytest.mark.slow
def test_a_long_text_of_any_tool_is_sent_without_its_middle(tmp_path):
    observation = {"kind": "GrepObservation", "content": [text(LONG), text("x")], "is_error": True}
    found = built_result(tmp_path, observation, extended_content=[text(LONG)])
    header = "[An error occurred during execution.]\n"
    assert found == "\n".join([header, SENT, "x", SENT])
    assert len(SENT) == 50_000


@pytest.mark.slow
def test_a_page_of_the_browser_is_one_text_with_its_screenshot(tmp_path):
    page = {"kind": "BrowserObservation", "content": [text(LONG[:30_000]), text(LONG[30_000:])]}
    assert built_result(tmp_path, {**page, "full_output_save_dir": None}) == SENT
    digests = [hashlib.sha256(data.encode()).hexdigest()[:8] for data in (LONG, "/9j/4AAQ")]
    kept = (
        f" The complete output has been saved to /o/browser_output_{digests[0]}.txt - you can use"
        " other tools to view the full content (truncated part starts around line 2496)."
    )
    found = built_result(
        tmp_path, {**page, "full_output_save_dir": "/o", "screenshot_data": "/9j/4AAQ"}
    )
    assert found == "\n".join(
        [
            LONG[:24_944] + NOTICE.format(kept) + LONG[-(24_943 - len(kept)) :],
            f"Screenshot saved to: /o/browser_screenshot_{digests[1]}.jpg",
            "[image]",
        ]
    )


def test_the_result_of_a_task_begins_with_its_state(tmp_path):
    task = {"task_id": "t1", "subagent": "general", "status": "done"}
    observation = {"kind": "TaskObservation", "content": [text("Three.")], **task}
    about = "Task ID: t1\nSubagent: general\nStatus: done"
    assert built_result(tmp_path, observation) == f"{about}\nThree."
