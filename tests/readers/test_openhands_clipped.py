"""Long terminal output is clipped in the middle, as OpenHands' SDK sends it."""

import hashlib
import json

import pytest
from builds import build, lines

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
    call = {
        "id": "c",
        "name": "terminal",
        "arguments": '{"command": "seq"}',
        "origin": "completion",
    }
    observation = {
        "kind": "TerminalObservation",
        "content": [text(output)],
        "metadata": {"exit_code": 0},
        "full_output_save_dir": folder,
    }
    asked = {"role": "user", "content": [text("Count.")]}
    events = [
        event("SystemPromptEvent", id="1", system_prompt=text("Be brief."), tools=[]),
        {**event("MessageEvent", id="2", llm_message=asked), "source": "user"},
        event("ActionEvent", id="3", thought=[], tool_call_id="c", tool_call=call,
              llm_response_id="r"),
        event("ObservationEvent", id="4", observation=observation, tool_call_id="c"),
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


def test_a_shorter_output_is_whole(tmp_path):
    output = "x" * 29_000
    assert observed(tmp_path, output, None) == output + "\n[Command finished with exit code 0]"
