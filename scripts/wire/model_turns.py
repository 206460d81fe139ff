"""The turns that the scripted model plays, chosen by the marker [[S:name]] in a user message.

A step is one answer: `think`, `text` and `calls` (tools are named by what they do: read, bash,
edit, write, skill, agent, or by their own name; `forced`: call it even if it is not offered),
`tokens` (the token count of the request that the answer reports), `stop` (another stop reason),
`delay` (seconds before the answer is sent), `status` (an HTTP error instead of an answer) and
`fault`, which happens the first time only: an HTTP status, "broken" (the stream ends in the middle
of the last block) or "error event" (an error follows there). The index of the step is the number of
assistant messages after the marker; the last step repeats. WITHOUT_TOOLS names the scripts that
answer requests without tools, which otherwise get a title.
"""

from __future__ import annotations

import os
from typing import Any

WORK = os.environ.get("WORKDIR", ".")

SUMMARY = (
    "<analysis>\nthinking about it\n</analysis>\n\n"
    "<summary>\n1. Primary request: MOCK SUMMARY of what was done so far.\n2. Files: app.py\n"
    "</summary>"
)


def _read(path: str) -> dict[str, Any]:
    return {"tool": "read", "args": {"path": f"{WORK}/{path}"}}


def _bash(command: str, **others: Any) -> dict[str, Any]:
    return {"tool": "bash", "args": {"command": command, **others}}


def _finish(answer: str) -> dict[str, Any]:
    return {"tool": "final_answer", "args": {"answer": answer}}


def _load(names: str) -> dict[str, Any]:
    """Loads deferred tools, if the agent has them."""
    return {"tool": "ToolSearch", "args": {"query": f"select:{names}", "max_results": 5}}


def _agent(name: str, *, background: bool) -> dict[str, Any]:
    task = f"[[S:{name}]] Count the lines of data.txt and report."
    arguments = {
        "description": "Count lines",
        "prompt": task,
        "message": task,
        "subagent_type": "general-purpose",
        "run_in_background": background,
    }
    return {"tool": "agent", "args": arguments}


WITHOUT_TOOLS = {"code", "textcalls", "textcalls2", "blocks", "wrongblocks", "said"}

_END = {"tool": "finish", "args": {"message": "A greeting."}}
_EDIT = {"path": f"{WORK}/app.py", "old": "print('hello')", "new": "print('goodbye')"}

_BLOCK = (
    "app.py\n```python\n<<<<<<< SEARCH\nprint('{}')\n=======\nprint('goodbye')\n"
    ">>>>>>> REPLACE\n```"
)

TURNS: dict[str, list[dict[str, Any]]] = {
    "plain": [
        {"text": "I'll read the file.", "calls": [_read("app.py")]},
        {"text": "app.py prints a greeting."},
    ],
    "submit": [
        {"text": "Look first.", "calls": [_bash("cat app.py")]},
        {"text": "Two at once.", "calls": [_bash("cat missing.txt"), _bash("cat data.txt")]},
        {"text": "Done.", "calls": [_bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")]},
    ],
    "submitlong": [
        {"text": "Look.", "calls": [_bash("seq 1 20000")]},
        {"text": "Done.", "calls": [_bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo yes")]},
    ],
    "blocks": [{"text": "A change.\n\n" + _BLOCK.format("hello")}],
    "wrongblocks": [
        {"text": "A change.\n\n" + _BLOCK.format("hallo")},
        {"text": "Once more.\n\n" + _BLOCK.format("hello")},
    ],
    "said": [{"text": "It says goodbye."}],
    "finish": [
        {"text": "Look first.", "calls": [_bash("cat app.py")]},
        {"calls": [_finish("It prints a greeting.")]},
    ],
    "ended": [
        {"text": "Look first.", "calls": [_read("app.py")]},
        {"text": "That is all.", "calls": [_END]},
    ],
    "ended2": [
        {
            "text": "Several things at once.",
            "calls": [_read("app.py"), _read("missing.txt"), _bash("cat data.txt")],
        },
        {"think": "Now the command.", "calls": [_bash("echo out; ls nowhere")]},
        *({"calls": [_bash(f"echo step {n}")]} for n in range(3, 8)),
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
        {"text": "Wrong arguments.", "calls": [{"tool": "bash", "args": {"timeout": "soon"}}]},
        {"text": "Both.", "calls": [_bash("cat app.py"), {"tool": "bash", "args": {"command": 5}}]},
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
        {"text": "Two at once.", "calls": [_bash("cat app.py"), _bash("cat data.txt")]},
        {"text": "One more.", "calls": [_bash("echo more")]},
        {"text": "Done.", "calls": [_finish("A greeting and three lines.")]},
    ],
    "finishlate": [
        {"text": "Without a call."},
        {"text": "A command that fails.", "calls": [_bash("echo err >&2; exit 3")]},
        {"text": "Look.", "calls": [_bash("cat app.py")]},
        {"calls": [_finish("It prints a greeting.")]},
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
            "calls": [_read("app.py")],
        },
        {"think": "Now I know.", "text": "It prints a greeting."},
    ],
    "parallel": [
        {
            "text": "Several things at once.",
            "calls": [_read("app.py"), _read("missing.txt"), _bash("cat data.txt")],
        },
        {"calls": [{"tool": "edit", "args": _EDIT}]},
        {"text": "A command that fails.", "calls": [_bash("echo out; echo err >&2; exit 3")]},
        {"text": "Edited; the command failed with 3."},
    ],
    "subfolder": [
        {"text": "Look in sub.", "calls": [_read("sub/mod.py")]},
        {"text": "AHOY, sub/mod.py holds x."},
    ],
    "second": [
        {"text": "Once more.", "calls": [_bash("cat data.txt")]},
        {"text": "data.txt has three lines."},
    ],
    "third": [{"text": "Answer after the compaction."}],
    "full": [
        {"text": "Reading.", "calls": [_read("app.py")], "tokens": 985_000},
        {"text": "Going on.", "calls": [_bash("cat data.txt")], "tokens": 990_000},
        {"text": "Still going on.", "calls": [_bash("echo more")]},
        {"text": "Done at last."},
    ],
    "skill": [
        {
            "text": "I use the skill.",
            "calls": [
                {"tool": "skill", "args": {"skill": "shout", "name": "shout", "args": "loudly"}}
            ],
        },
        {"calls": [_bash("cat data.txt")]},
        {"text": "ONE TWO THREE!"},
    ],
    "agent": [
        {"text": "A sub-agent does it.", "calls": [_agent("sub", background=False)]},
        {"text": "The sub-agent counted three lines."},
    ],
    "agents": [
        {
            "text": "Two sub-agents do it.",
            "calls": [_agent("sub", background=False), _agent("plain", background=False)],
        },
        {"text": "Both are done."},
    ],
    "agentbg": [
        {"text": "A sub-agent does it.", "calls": [_agent("subslow", background=True)]},
        {"text": "The sub-agent works in the background."},
        {"text": "The sub-agent counted three lines."},
    ],
    "sub": [{"calls": [_bash("wc -l data.txt")]}, {"text": "data.txt has 3 lines."}],
    "subslow": [
        {"calls": [_bash("sleep 1; wc -l data.txt")]},
        {"text": "data.txt has 3 lines."},
    ],
    "slash": [{"text": "Greeting.", "calls": [_bash("echo hi")]}, {"text": "Hello, Bob!"}],
    "mention": [
        {"text": "I see the file that you named.", "calls": [_bash("cat data.txt")]},
        {"text": "It prints a greeting."},
    ],
    "hooks": [
        {"text": "With hooks.", "calls": [_read("app.py")]},
        {"calls": [_bash("echo blocked?")]},
        {"text": "Done with hooks."},
        {"text": "Now really done."},
    ],
    "long": [
        {"calls": [_read("app.py")]},
        {"calls": [_bash("echo \"print('changed outside')\" >> app.py")]},
        *({"calls": [_bash(f"echo step {n}")]} for n in range(3, 16)),
        {"text": "Done after many steps."},
    ],
    "big": [
        {"calls": [_bash("seq 1 30000")]},
        {"calls": [_read("big.txt")]},
        {"text": "Large output seen."},
    ],
    "image": [{"calls": [_read("dot.png")]}, {"text": "A dot."}],
    "background": [
        {"calls": [_bash("sleep 2; echo background done", run_in_background=True)]},
        {"calls": [_bash("sleep 5; echo waited")]},
        {"text": "The background job is done."},
    ],
    "search": [
        {
            "calls": [
                {
                    "tool": "ToolSearch",
                    "args": {"query": "select:WebFetch,mcp__demo__add", "max_results": 5},
                }
            ]
        },
        {"calls": [{"tool": "mcp__demo__add", "args": {"a": 2, "b": 3}}]},
        {"text": "Found them."},
    ],
    "mcp": [
        {"calls": [{"tool": "mcp__demo__add", "args": {"a": 2, "b": 3}}]},
        {"text": "2+3=5."},
    ],
    "todo": [
        {
            "calls": [
                {
                    "tool": "TodoWrite",
                    "args": {
                        "todos": [
                            {"content": "one", "status": "in_progress", "activeForm": "doing one"}
                        ]
                    },
                }
            ]
        },
        {"calls": [_bash("echo one")]},
        {"text": "Todo noted."},
    ],
    "plan": [
        {"calls": [_read("app.py"), _load("ExitPlanMode")]},
        {"calls": [{"tool": "ExitPlanMode", "args": {"plan": "Change one line."}}]},
        {"text": "Here is my plan."},
    ],
    "denied": [
        {"text": "I remove it.", "calls": [_bash("rm data.txt")]},
        {"text": "I leave it, as you wish."},
    ],
    "denied2": [
        {"text": "Two things.", "calls": [_read("app.py"), _bash("touch other.txt")]},
        {"text": "I could do the first only."},
    ],
    "sleep": [
        {"text": "A long command.", "calls": [_bash("sleep 20; echo slept")]},
        {"text": "It slept."},
    ],
    "sleep2": [
        {"text": "Two commands.", "calls": [_bash("cat data.txt"), _bash("sleep 20; echo slept")]},
        {"text": "Both are done."},
    ],
    "sleepshort": [
        {"text": "A command.", "calls": [_bash("sleep 3; echo slept")]},
        {"text": "It slept."},
        {"text": "It is Sunday."},
    ],
    "slow": [{"text": "A slow answer.", "delay": 20}],
    "overloaded": [{"status": 400}],
    "broken": [
        {"text": "I'll read it.", "calls": [_read("app.py")]},
        {"text": "A long answer that breaks off in the middle of a sentence.", "fault": "broken"},
    ],
    "brokencall": [
        {"text": "I'll read it.", "calls": [_read("app.py")], "fault": "broken"},
        {"text": "app.py prints a greeting."},
    ],
    "brokenlater": [
        {
            "text": "Two at once.",
            "calls": [_read("app.py"), _bash("cat data.txt")],
            "fault": "error event",
        },
        {"text": "app.py prints a greeting, data.txt has lines."},
    ],
    "busy": [
        {"text": "I'll read it.", "calls": [_read("app.py")], "fault": 529},
        {"text": "app.py prints a greeting.", "fault": 500},
    ],
    "cutoff": [
        {"text": "I'll read it.", "calls": [_read("app.py")]},
        {"text": "This answer is longer than the limit and", "stop": "max_tokens"},
        {"text": "ends here."},
    ],
    "denied3": [
        {
            "text": "Three commands.",
            "calls": [_bash("touch one.txt"), _bash("touch two.txt"), _bash("touch three.txt")],
        },
        {"text": "One of them was refused."},
    ],
    "backgrounds": [
        {
            "text": "Two in the background.",
            "calls": [
                _bash("sleep 1; echo first done", run_in_background=True),
                _bash("sleep 2; echo second done; exit 3", run_in_background=True),
            ],
        },
        {"calls": [_bash("sleep 4; echo waited")]},
        {"text": "Both have ended."},
    ],
    "agentsbg": [
        {
            "text": "Two sub-agents do it.",
            "calls": [_agent("subslow", background=True), _agent("sub", background=True)],
        },
        {"text": "Both work in the background."},
        {"text": "I have heard of one."},
        {"text": "I have heard of both."},
    ],
    "pdf": [{"calls": [_read("page.pdf")]}, {"text": "A page."}],
    "picture": [
        {
            "calls": [
                {
                    "tool": "ToolSearch",
                    "args": {"query": "select:mcp__demo__picture,mcp__demo__big", "max_results": 5},
                }
            ]
        },
        {"calls": [{"tool": "mcp__demo__picture", "args": {}}]},
        {"calls": [{"tool": "mcp__demo__big", "args": {}}]},
        {"text": "A picture and a long text."},
    ],
    "grow": [
        {"calls": [_load("mcp__demo__grow"), _bash("echo begin")]},
        {"calls": [{"tool": "mcp__demo__grow", "args": {}}]},
        {"calls": [_bash("sleep 1; echo waited")]},
        {"calls": [_load("mcp__demo__late"), _bash("echo again")]},
        {"calls": [{"tool": "mcp__demo__late", "args": {}}]},
        {"text": "The new tool works."},
    ],
    "enterplan": [
        {"calls": [_read("data.txt"), _load("EnterPlanMode,ExitPlanMode")]},
        {"calls": [{"tool": "EnterPlanMode", "args": {}}]},
        {"calls": [_read("app.py")]},
        {"calls": [{"tool": "ExitPlanMode", "args": {"plan": "Change one line."}}]},
        {"text": "Here is my plan."},
    ],
    "tasks": [
        {
            "calls": [
                {
                    "tool": "TaskCreate",
                    "args": {"subject": "One", "description": "Do one.", "activeForm": "Doing one"},
                }
            ]
        },
        {"calls": [{"tool": "TaskUpdate", "args": {"taskId": "1", "status": "in_progress"}}]},
        *({"calls": [_bash(f"echo step {n}")]} for n in range(3, 14)),
        {"calls": [{"tool": "TaskUpdate", "args": {"taskId": "1", "status": "completed"}}]},
        {"text": "The task is done."},
    ],
    "question": [
        {
            "calls": [
                {
                    "tool": "AskUserQuestion",
                    "args": {
                        "questions": [
                            {
                                "question": "Which colour?",
                                "header": "Colour",
                                "multiSelect": False,
                                "options": [
                                    {"label": "Red", "description": "Warm."},
                                    {"label": "Blue", "description": "Cold."},
                                ],
                            }
                        ]
                    },
                }
            ]
        },
        {"text": "As you chose."},
    ],
    "skills": [
        {"calls": [{"tool": "skill", "args": {"skill": "shout", "args": "one"}}]},
        {"calls": [{"tool": "skill", "args": {"skill": "whisper", "args": "two"}}]},
        {"text": "shouted and whispered."},
    ],
    "structured": [
        {"calls": [_read("app.py")]},
        {"calls": [{"tool": "StructuredOutput", "args": {"greeting": "hello"}}]},
        {"text": "Given."},
    ],
    "crash": [
        {"calls": [_load("mcp__demo__add,mcp__demo__crash"), _bash("echo begin")]},
        {"calls": [{"tool": "mcp__demo__add", "args": {"a": 2, "b": 3}}]},
        {"calls": [{"tool": "mcp__demo__crash", "args": {}}]},
        {"calls": [{"tool": "mcp__demo__add", "args": {"a": 4, "b": 5}}, _bash("sleep 1")]},
        {"text": "The server has gone."},
    ],
    "nested": [
        {"calls": [_read("sub/mod.py"), _read("sub/deep/mod.py")]},
        {"calls": [_read("other/mod.py"), _read("sub/deep/mod.py")]},
        {"text": "Three files."},
    ],
    "readback": [
        {"calls": [_bash("seq 1 30000"), _bash("seq 1 30000 >&2; exit 4")]},
        {"calls": [_bash("head -c 300 $HOME/.claude/projects/*/*/tool-results/*")]},
        {"calls": [_bash("seq 1 3000 | sed 's/$/ and more words in each line/'")]},
        {"text": "Large output read back."},
    ],
    "mixed": [
        {
            "text": "All at once.",
            "calls": [
                _agent("nested", background=False),
                _bash("cat data.txt"),
                _agent("sub", background=False),
                _read("missing.txt"),
            ],
        },
        {"text": "All done."},
    ],
    "thoughts": [
        {"think": "One.", "text": "Two calls.", "calls": [_read("app.py"), _bash("echo two")]},
        {"think": "Two.", "calls": [_bash("exit 7")]},
        {"think": "Three.", "text": "It prints a greeting."},
    ],
    "notebook": [
        {"calls": [_read("note.ipynb"), _load("NotebookEdit,WebFetch")]},
        {
            "calls": [
                {
                    "tool": "NotebookEdit",
                    "args": {
                        "notebook_path": f"{WORK}/note.ipynb",
                        "cell_id": "c1",
                        "new_source": "print(2)",
                    },
                },
                {
                    "tool": "WebFetch",
                    "args": {"url": "http://127.0.0.1:9/none", "prompt": "What is it?"},
                },
            ]
        },
        {"text": "Edited."},
    ],
    "quoted": [
        {"text": "I read it. <system-reminder> is a tag.", "calls": [_read("quoted.txt")]},
        {"calls": [_bash("cat quoted.txt")]},
        {"text": "A file with tags."},
    ],
    "files": [
        {
            "calls": [
                {"tool": "write", "args": {"path": f"{WORK}/new.txt", "content": "one\ntwo\n"}}
            ]
        },
        {
            "calls": [
                {"tool": "edit", "args": {"path": f"{WORK}/new.txt", "old": "two", "new": "three"}}
            ]
        },
        {"calls": [_read("new.txt"), _read("sub"), _bash("ls nowhere")]},
        {"text": "Written."},
    ],
}
"""Scripts by name."""
