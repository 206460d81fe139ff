"""Logs with two continuations of one context, in the form that their programs write."""

import json


def claude_lines(turns):
    """Returns lines of a Claude Code session from (uuid, parent, role, content)."""
    made = []
    for number, (uuid, parent, role, content) in enumerate(turns):
        message = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"m-{uuid}", "type": "message", "model": "toy-1"}
        made.append(
            {
                "type": role,
                "uuid": uuid,
                "parentUuid": parent,
                "sessionId": "s1",
                "isSidechain": False,
                "timestamp": f"2025-01-01T00:00:{number:02}.000Z",
                "message": message,
            }
        )
    return "".join(json.dumps(line) + "\n" for line in made)


def text(words):
    return [{"type": "text", "text": words}]


def call(name, ident, **arguments):
    return [{"type": "tool_use", "id": ident, "name": name, "input": arguments}]


def result(ident, content, **more):
    return [{"type": "tool_result", "tool_use_id": ident, "content": content, **more}]


FIRST, SECOND = text("First answer."), text("Second answer.")


def rewound(left=FIRST, kept=SECOND, again="Do it"):
    """Returns a session whose user went back before the first answer and asked `again`."""
    return claude_lines(
        [
            ("u1", None, "user", "Hi"),
            ("a1", "u1", "assistant", text("Hello.")),
            ("u2", "a1", "user", "Do it"),
            ("a2", "u2", "assistant", left),
            ("u3", "a1", "user", again),
            ("a3", "u3", "assistant", kept),
        ]
    )


def corrected(first, second, error="refused", *, outcome="ok", words="", between=None):
    """Returns a session in which a call failed and another one followed."""
    turns = [
        ("u1", None, "user", "Change it"),
        ("a1", "u1", "assistant", first),
        ("u2", "a1", "user", result("t1", error, is_error=True)),
    ]
    last = "u2"
    if between is not None:
        turns.append(("u3", last, "user", between))
        last = "u3"
    answer = [*(text(words) if words else []), *second]
    failed = {"is_error": True} if outcome == "failed" else {}
    return claude_lines(
        [
            *turns,
            ("a2", last, "assistant", answer),
            ("u4", "a2", "user", result("t2", outcome, **failed)),
            ("a3", "u4", "assistant", text("Done.")),
        ]
    )


EDIT = call("Edit", "t1", file_path="/a", old_string="x", new_string="y")
EDIT_AGAIN = call("Edit", "t2", file_path="/a", old_string="x = 1", new_string="y = 1")
DENIED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was"
    " a file edit, the new_string was NOT written to the file). STOP what you are doing and wait"
    " for the user to tell you how to proceed."
)


def captured(answers, next_request=True):
    """Returns a request sent for each of two answers; the conversation continues from the first."""
    asked = [{"role": "user", "content": "What time is it?"}]
    rows = [exchange(asked, answer) for answer in answers]
    if next_request:
        later = [*asked, {"role": "assistant", "content": answers[0]}]
        later.append({"role": "user", "content": "Thanks"})
        rows.append(exchange(later, "You are welcome."))
    return "".join(json.dumps(row) + "\n" for row in rows)


def exchange(messages, answer):
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": answer},
    }
    return {
        "request": {"model": "toy", "messages": messages},
        "response": {"object": "chat.completion", "model": "toy", "choices": [choice]},
    }
