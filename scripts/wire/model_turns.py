"""The turns that the scripted model plays, chosen by the marker [[S:name]] in a user message.

A step is one answer: `think`, `text` and `calls` (tools are named by what they do: read, bash,
edit, write, skill, agent, or by their own name; `forced`: call it even if it is not offered; an
argument `{{REGEX}}` is the last match in the messages so far), `tokens` (the token count of the
request that the answer reports), `stop` (another stop reason), `delay` (seconds before the answer
is sent), `pace` (seconds before each block of a streamed answer and before its end), `status` (an
HTTP error instead of an answer) and `fault`, which happens the first time only: an HTTP status,
"broken" (the stream ends in the middle of the last block) or "error event" (an error follows
there). The index of the step is the number of assistant messages after the marker; the last step
repeats. WITHOUT_TOOLS names the scripts that answer requests without tools, which otherwise get a
title.
"""

from __future__ import annotations

from typing import Any

from wire.rare_turns import RARE_TURNS
from wire.steps import WORK, agent, bash, finish, load, read, use

SUMMARY = (
    "<analysis>\nthinking about it\n</analysis>\n\n"
    "<summary>\n1. Primary request: MOCK SUMMARY of what was done so far.\n2. Files: app.py\n"
    "</summary>"
)

WITHOUT_TOOLS = {"code", "textcalls", "textcalls2", "blocks", "wrongblocks", "said"}

_END = use("finish", message="A greeting.")
_EDIT = {"path": f"{WORK}/app.py", "old": "print('hello')", "new": "print('goodbye')"}

_BLOCK = (
    "app.py\n```python\n<<<<<<< SEARCH\nprint('{}')\n=======\nprint('goodbye')\n"
    ">>>>>>> REPLACE\n```"
)

TURNS: dict[str, list[dict[str, Any]]] = {
    "plain": [
        {"text": "I'll read the file.", "calls": [read("app.py")]},
        {"text": "app.py prints a greeting."},
    ],
    "dot": [
        {"text": "I'll look.", "calls": [read("dot.png"), read("app.py")]},
        {"text": "One pixel."},
    ],
    "numbers": [
        {"text": "Many.", "calls": [bash("seq 1 40000")]},
        {"text": "More.", "calls": [bash("seq 50000 90000")]},
        {"text": "Few.", "calls": [bash("echo 1")]},
        {"text": "Counted."},
    ],
    "manager": [
        {"text": "An agent does it.", "calls": [agent("parallel", background=False)]},
        {"text": "It is done."},
    ],
    "halfway": [{"text": "Half of an answer.", "pace": 30}],
    "halves": [
        {"text": "The first half of a long", "stop": "length"},
        {"text": " answer, and the rest."},
    ],
    "submit": [
        {"text": "Look first.", "calls": [bash("cat app.py")]},
        {"text": "Two at once.", "calls": [bash("cat missing.txt"), bash("cat data.txt")]},
        {"text": "Done.", "calls": [bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")]},
    ],
    "submitlong": [
        {"text": "Look.", "calls": [bash("seq 1 20000")]},
        {"text": "Done.", "calls": [bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo yes")]},
    ],
    "blocks": [{"text": "A change.\n\n" + _BLOCK.format("hello")}],
    "wrongblocks": [
        {"text": "A change.\n\n" + _BLOCK.format("hallo")},
        {"text": "Once more.\n\n" + _BLOCK.format("hello")},
    ],
    "said": [{"text": "It says goodbye."}],
    "finish": [
        {"text": "Look first.", "calls": [bash("cat app.py")]},
        {"calls": [finish("It prints a greeting.")]},
    ],
    "ended": [
        {"text": "Look first.", "calls": [read("app.py")]},
        {"text": "That is all.", "calls": [_END]},
    ],
    "ended2": [
        {
            "text": "Several things at once.",
            "calls": [read("app.py"), read("missing.txt"), bash("cat data.txt")],
        },
        {"think": "Now the command.", "calls": [bash("echo out; ls nowhere")]},
        *({"calls": [bash(f"echo step {n}")]} for n in range(3, 8)),
        {"calls": [_END]},
    ],
    "textcalls2": [
        {
            "text": "Look.\n<function=execute_bash>\n<parameter=command>cat app.py</parameter>\n"
            "<parameter=security_risk>LOW</parameter>\n</function>"
        },
        {"text": "<function=finish>\n<parameter=message>A greeting.</parameter>\n</function>"},
    ],
    "faulty": [
        {"text": "No such tool.", "calls": [{"tool": "unknown", "args": {"x": 1}, "forced": True}]},
        {"text": "Wrong arguments.", "calls": [use("bash", timeout="soon")]},
        {"text": "Both.", "calls": [bash("cat app.py"), use("bash", command=5)]},
        {"text": "Given up."},
    ],
    "textcalls": [
        {
            "text": "Look.\n<function=terminal>\n<parameter=command>cat app.py</parameter>\n"
            "</function>"
        },
        {"text": "app.py prints a greeting."},
    ],
    "finish2": [
        {"text": "Two at once.", "calls": [bash("cat app.py"), bash("cat data.txt")]},
        {"text": "One more.", "calls": [bash("echo more")]},
        {"text": "Done.", "calls": [finish("A greeting and three lines.")]},
    ],
    "finishlate": [
        {"text": "Without a call."},
        {"text": "A command that fails.", "calls": [bash("echo err >&2; exit 3")]},
        {"text": "Look.", "calls": [bash("cat app.py")]},
        {"calls": [finish("It prints a greeting.")]},
    ],
    "code": [
        {"text": "Thought: look first.\n<code>\nprint(bash('cat app.py'))\n</code>"},
        {"text": "Thought: no code yet.</code>"},
        {"text": "Thought: a mistake.\n<code>\nprint(unknown_name)\n</code>"},
        {"text": "Thought: done.\n<code>\nfinal_answer('It prints a greeting.')\n</code>"},
    ],
    "think": [
        {
            "think": "The user wants app.py, so read it first.",
            "text": "I'll read it.",
            "calls": [read("app.py")],
        },
        {"think": "Now I know.", "text": "It prints a greeting."},
    ],
    "parallel": [
        {
            "text": "Several things at once.",
            "calls": [read("app.py"), read("missing.txt"), bash("cat data.txt")],
        },
        {"calls": [{"tool": "edit", "args": _EDIT}]},
        {"text": "A command that fails.", "calls": [bash("echo out; echo err >&2; exit 3")]},
        {"text": "Edited; the command failed with 3."},
    ],
    "subfolder": [
        {"text": "Look in sub.", "calls": [read("sub/mod.py")]},
        {"text": "AHOY, sub/mod.py holds x."},
    ],
    "second": [
        {"text": "Once more.", "calls": [bash("cat data.txt")]},
        {"text": "data.txt has three lines."},
    ],
    "third": [{"text": "Answer after the compaction."}],
    "full": [
        {"text": "Reading.", "calls": [read("app.py")], "tokens": 985_000},
        {"text": "Going on.", "calls": [bash("cat data.txt")], "tokens": 990_000},
        {"text": "Still going on.", "calls": [bash("echo more")]},
        {"text": "Done at last."},
    ],
    "skill": [
        {
            "text": "I use the skill.",
            "calls": [use("skill", skill="shout", name="shout", args="loudly")],
        },
        {"calls": [bash("cat data.txt")]},
        {"text": "ONE TWO THREE!"},
    ],
    "agent": [
        {"text": "A sub-agent does it.", "calls": [agent("sub", background=False)]},
        {"text": "The sub-agent counted three lines."},
    ],
    "agents": [
        {
            "text": "Two sub-agents do it.",
            "calls": [agent("sub", background=False), agent("plain", background=False)],
        },
        {"text": "Both are done."},
    ],
    "agentbg": [
        {"text": "A sub-agent does it.", "calls": [agent("subslow", background=True)]},
        {"text": "The sub-agent works in the background."},
        {"text": "The sub-agent counted three lines."},
    ],
    "sub": [{"calls": [bash("wc -l data.txt")]}, {"text": "data.txt has 3 lines."}],
    "subslow": [{"calls": [bash("sleep 1; wc -l data.txt")]}, {"text": "data.txt has 3 lines."}],
    "slash": [{"text": "Greeting.", "calls": [bash("echo hi")]}, {"text": "Hello, Bob!"}],
    "mention": [
        {"text": "I see the file that you named.", "calls": [bash("cat data.txt")]},
        {"text": "It prints a greeting."},
    ],
    "hooks": [
        {"text": "With hooks.", "calls": [read("app.py")]},
        {"calls": [bash("echo blocked?")]},
        {"text": "Done with hooks."},
        {"text": "Now really done."},
    ],
    "long": [
        {"calls": [read("app.py")]},
        {"calls": [bash("echo \"print('changed outside')\" >> app.py")]},
        *({"calls": [bash(f"echo step {n}")]} for n in range(3, 16)),
        {"text": "Done after many steps."},
    ],
    "big": [
        {"calls": [bash("seq 1 30000")]},
        {"calls": [read("big.txt")]},
        {"text": "Large output seen."},
    ],
    "image": [{"calls": [read("dot.png")]}, {"text": "A dot."}],
    "background": [
        {"calls": [bash("sleep 2; echo background done", run_in_background=True)]},
        {"calls": [bash("sleep 5; echo waited")]},
        {"text": "The background job is done."},
    ],
    "search": [
        {"calls": [load("WebFetch", "mcp__demo__add")]},
        {"calls": [use("mcp__demo__add", a=2, b=3)]},
        {"text": "Found them."},
    ],
    "mcp": [{"calls": [use("mcp__demo__add", a=2, b=3)]}, {"text": "2+3=5."}],
    "todo": [
        {
            "calls": [
                use(
                    "TodoWrite",
                    todos=[{"content": "one", "status": "in_progress", "activeForm": "doing one"}],
                )
            ]
        },
        {"calls": [bash("echo one")]},
        {"text": "Todo noted."},
    ],
    "plan": [
        {"calls": [read("app.py"), load("ExitPlanMode")]},
        {"calls": [use("ExitPlanMode", plan="Change one line.")]},
        {"text": "Here is my plan."},
    ],
    "denied": [
        {"text": "I remove it.", "calls": [bash("rm data.txt")]},
        {"text": "I leave it, as you wish."},
    ],
    "denied2": [
        {"text": "Two things.", "calls": [read("app.py"), bash("touch other.txt")]},
        {"text": "I could do the first only."},
    ],
    "sleep": [
        {"text": "A long command.", "calls": [bash("sleep 20; echo slept")]},
        {"text": "It slept."},
    ],
    "sleep2": [
        {"text": "Two commands.", "calls": [bash("cat data.txt"), bash("sleep 20; echo slept")]},
        {"text": "Both are done."},
    ],
    "sleepshort": [
        {"text": "A command.", "calls": [bash("sleep 3; echo slept")]},
        {"text": "It slept."},
        {"text": "It is Sunday."},
    ],
    **RARE_TURNS,
}
"""Scripts by name."""
