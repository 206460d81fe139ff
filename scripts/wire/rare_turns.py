"""The turns of rarer scenarios: faults, waits, limits, questions and special tools."""

from __future__ import annotations

from typing import Any

from wire.steps import WORK, agent, bash, load, read, use

RARE_TURNS: dict[str, list[dict[str, Any]]] = {
    "stopped": [
        {"text": "Two at once.", "calls": [read("app.py"), bash("cat data.txt")]},
        {"text": "No hook has stopped this."},
    ],
    "slow": [{"text": "A slow answer.", "delay": 20}],
    "paced": [
        {
            "think": "Three calls.",
            "text": "Slowly, one after the other.",
            "calls": [read("app.py"), bash("sleep 1; cat data.txt"), bash("exit 3")],
            "pace": 1.2,
        },
        {
            "think": "One more.",
            "text": "A sub-agent.",
            "calls": [agent("pacedsub", background=False), bash("echo meanwhile")],
            "pace": 1.2,
        },
        {"think": "All is known.", "text": "It prints a greeting.", "pace": 1.2},
    ],
    "pacedsub": [
        {"text": "Counting.", "calls": [bash("wc -l data.txt"), read("data.txt")], "pace": 0.8},
        {"text": "data.txt has 3 lines.", "pace": 0.8},
    ],
    "pacedbroken": [
        {
            "text": "Two at once.",
            "calls": [read("app.py"), bash("cat data.txt")],
            "pace": 1.2,
            "fault": "broken",
        },
        {
            "text": "One.",
            "calls": [read("app.py"), bash("cat data.txt")],
            "pace": 1.2,
            "fault": "error event",
        },
        {
            "think": "All is known.",
            "text": "It prints a greeting and",
            "pace": 1.2,
            "fault": "broken",
        },
    ],
    "agentsbroken": [
        {"text": "The first.", "calls": [agent("subbroken", background=False)]},
        {"text": "The second.", "calls": [agent("subcut", background=False)]},
        {"text": "The third.", "calls": [agent("sublater", background=False)]},
        {"text": "All have answered."},
    ],
    "subbroken": [
        {"text": "Counting.", "calls": [bash("wc -l data.txt")], "pace": 0.8, "fault": "broken"},
        {"text": "data.txt has 3 lines; this breaks off.", "pace": 0.8, "fault": "broken"},
    ],
    "sublater": [
        {
            "text": "Two.",
            "calls": [bash("wc -l data.txt"), read("data.txt")],
            "pace": 0.8,
            "fault": "error event",
        },
        {"think": "So many.", "text": "data.txt has 3 lines.", "pace": 0.8, "fault": "error event"},
    ],
    "subcut": [
        {"text": "This counting is longer than the limit and", "stop": "max_tokens", "pace": 0.8},
        {"text": "ends here.", "pace": 0.8},
    ],
    "weather": [
        {"text": "I'll ask.", "calls": [use("weather", city="Bern")]},
        {"text": "8 degrees."},
    ],
    "failing": [
        {
            "text": "They fail.",
            "calls": [
                read("missing.txt"),
                use("edit", path=f"{WORK}/app.py", old="nowhere", new="somewhere"),
                use("edit", path=f"{WORK}/data.txt", old="e", new="E"),
                use("edit", path=f"{WORK}/none.py", old="a", new="b"),
                use("write", path=f"{WORK}/app.py", content="x = 1"),
                use("write", path=f"{WORK}/no/such/folder/new.py", content="x = 1"),
            ],
        },
        {"text": "Once more.", "calls": [use("grep", pattern="(", path=f"{WORK}/none")]},
        {"text": "All of them failed."},
    ],
    "reread": [
        {"text": "Once.", "calls": [bash("seq 1 30000 > long.txt")]},
        {"text": "Twice.", "calls": [read("long.txt")]},
        *({"text": "And again.", "calls": [read("long.txt")]} for _ in range(9)),
        {"text": "It has numbers."},
    ],
    "overloaded": [{"status": 400}],
    "broken": [
        {"text": "I'll read it.", "calls": [read("app.py")]},
        {"text": "A long answer that breaks off in the middle of a sentence.", "fault": "broken"},
    ],
    "brokencall": [
        {"text": "I'll read it.", "calls": [read("app.py")], "fault": "broken"},
        {"text": "app.py prints a greeting."},
    ],
    "brokenlater": [
        {
            "text": "Two at once.",
            "calls": [read("app.py"), bash("cat data.txt")],
            "fault": "error event",
        },
        {"text": "app.py prints a greeting, data.txt has lines."},
    ],
    "busy": [
        {"text": "I'll read it.", "calls": [read("app.py")], "fault": 529},
        {"text": "app.py prints a greeting.", "fault": 500},
    ],
    "cutoff": [
        {"text": "I'll read it.", "calls": [read("app.py")]},
        {"text": "This answer is longer than the limit and", "stop": "max_tokens"},
        {"text": "ends here."},
    ],
    "denied3": [
        {
            "text": "Three commands.",
            "calls": [bash("touch one.txt"), bash("touch two.txt"), bash("touch three.txt")],
        },
        {"text": "One of them was refused."},
    ],
    "backgrounds": [
        {
            "text": "Two in the background.",
            "calls": [
                bash("sleep 1; echo first done", run_in_background=True),
                bash("sleep 2; echo second done; exit 3", run_in_background=True),
            ],
        },
        {"calls": [bash("sleep 4; echo waited")]},
        {"text": "Both have ended."},
    ],
    "agentsbg": [
        {
            "text": "Two sub-agents do it.",
            "calls": [agent("subslow", background=True), agent("sub", background=True)],
        },
        {"text": "Both work in the background."},
        {"text": "I have heard of one."},
        {"text": "I have heard of both."},
    ],
    "pdf": [{"calls": [read("page.pdf")]}, {"text": "A page."}],
    "picture": [
        {"calls": [load("mcp__demo__picture", "mcp__demo__big")]},
        {"calls": [use("mcp__demo__picture")]},
        {"calls": [use("mcp__demo__big")]},
        {"text": "A picture and a long text."},
    ],
    "grow": [
        {"calls": [load("mcp__demo__grow"), bash("echo begin")]},
        {"calls": [use("mcp__demo__grow")]},
        {"calls": [bash("sleep 1; echo waited")]},
        {"calls": [load("mcp__demo__late"), bash("echo again")]},
        {"calls": [use("mcp__demo__late")]},
        {"text": "The new tool works."},
    ],
    "enterplan": [
        {"calls": [read("data.txt"), load("EnterPlanMode", "ExitPlanMode")]},
        {"calls": [use("EnterPlanMode")]},
        {"calls": [read("app.py")]},
        {"calls": [use("ExitPlanMode", plan="Change one line.")]},
        {"text": "Here is my plan."},
    ],
    "planfile": [
        {"calls": [read("data.txt"), load("ExitPlanMode")]},
        {"calls": [use("write", path=r"{{(/\S+/plans/\S+?\.md)}}", content="Change a line.\n")]},
        {"text": "My plan.", "calls": [use("ExitPlanMode")]},
        {"text": "Now I change it.", "calls": [bash("echo changed")]},
        {"text": "Changed."},
    ],
    "tasks": [
        {
            "calls": [
                use("TaskCreate", subject="One", description="Do one.", activeForm="Doing one")
            ]
        },
        {"calls": [use("TaskUpdate", taskId="1", status="in_progress")]},
        *({"calls": [bash(f"echo step {n}")]} for n in range(3, 14)),
        {"calls": [use("TaskUpdate", taskId="1", status="completed")]},
        {"text": "The task is done."},
    ],
    "question": [
        {
            "calls": [
                use(
                    "AskUserQuestion",
                    questions=[
                        {
                            "question": "Which colour?",
                            "header": "Colour",
                            "multiSelect": False,
                            "options": [
                                {"label": "Red", "description": "Warm."},
                                {"label": "Blue", "description": "Cold."},
                            ],
                        }
                    ],
                )
            ]
        },
        {"text": "As you chose."},
    ],
    "skills": [
        {"calls": [use("skill", skill="shout", args="one")]},
        {"calls": [use("skill", skill="whisper", args="two")]},
        {"text": "shouted and whispered."},
    ],
    "structured": [
        {"calls": [read("app.py")]},
        {"calls": [use("StructuredOutput", greeting="hello")]},
        {"text": "Given."},
    ],
    "crash": [
        {"calls": [load("mcp__demo__add", "mcp__demo__crash"), bash("echo begin")]},
        {"calls": [use("mcp__demo__add", a=2, b=3)]},
        {"calls": [use("mcp__demo__crash")]},
        {"calls": [use("mcp__demo__add", a=4, b=5), bash("sleep 1")]},
        {"text": "The server has gone."},
    ],
    "nested": [
        {"calls": [read("sub/mod.py"), read("sub/deep/mod.py")]},
        {"calls": [read("other/mod.py"), read("sub/deep/mod.py")]},
        {"text": "Three files."},
    ],
    "readback": [
        {"calls": [bash("seq 1 30000"), bash("seq 1 30000 >&2; exit 4")]},
        {"calls": [bash("head -c 300 $HOME/.claude/projects/*/*/tool-results/*")]},
        {"calls": [bash("seq 1 3000 | sed 's/$/ and more words in each line/'")]},
        {"text": "Large output read back."},
    ],
    "mixed": [
        {
            "text": "All at once.",
            "calls": [
                agent("nested", background=False),
                bash("cat data.txt"),
                agent("sub", background=False),
                read("missing.txt"),
            ],
        },
        {"text": "All done."},
    ],
    "thoughts": [
        {"think": "One.", "text": "Two calls.", "calls": [read("app.py"), bash("echo two")]},
        {"think": "Two.", "calls": [bash("exit 7")]},
        {"think": "Three.", "text": "It prints a greeting."},
    ],
    "notebook": [
        {"calls": [read("note.ipynb"), load("NotebookEdit", "WebFetch")]},
        {
            "calls": [
                use(
                    "NotebookEdit",
                    notebook_path=f"{WORK}/note.ipynb",
                    cell_id="c1",
                    new_source="print(2)",
                ),
                use("WebFetch", url="http://127.0.0.1:9/none", prompt="What is it?"),
            ]
        },
        {"text": "Edited."},
    ],
    "odd": [
        {"text": " \n A text with spaces around it. \n ", "calls": [bash("printf 'no newline'")]},
        {"calls": [bash("printf '\\033[31mred\\033[0m\\r\\nnext\\n\\n  \\n'"), bash("true")]},
        {
            "calls": [
                bash("printf 'a\\0b \\xff\\xfe \\xe2\\x80\\xa8 \\xf0\\x9f\\x98\\x80 <tag>&amp;'")
            ]
        },
        {"text": "Text with \u2028, \U0001f600, \t tabs and <b>tags</b> &amp; more."},
    ],
    "refusal": [{"text": "I cannot", "stop": "refusal"}, {"text": "Something else."}],
    "taskoutput": [
        {"calls": [bash("echo early; sleep 30", run_in_background=True)]},
        {"calls": [load("TaskOutput", "TaskStop"), bash("sleep 1")]},
        {"calls": [use("TaskOutput", task_id=r"{{ID: (\w+)}}", block=False)]},
        {"calls": [use("TaskStop", task_id=r"{{ID: (\w+)}}")]},
        {"text": "Stopped."},
    ],
    "tell": [
        {"text": "A sub-agent counts.", "calls": [agent("sub", background=False)]},
        {"calls": [load("SendMessage")]},
        {
            "text": "It shall go on.",
            "calls": [
                use(
                    "SendMessage",
                    to=r"{{agentId: (\w+)}}",
                    summary="Again",
                    message="[[S:sub]] Count once more.",
                )
            ],
        },
        {"calls": [bash("sleep 3")]},
        {"text": "It counted twice."},
    ],
    "quoted": [
        {"text": "I read it. <system-reminder> is a tag.", "calls": [read("quoted.txt")]},
        {"calls": [bash("cat quoted.txt")]},
        {"text": "A file with tags."},
    ],
    "files": [
        {"calls": [use("write", path=f"{WORK}/new.txt", content="one\ntwo\n")]},
        {"calls": [use("edit", path=f"{WORK}/new.txt", old="two", new="three")]},
        {"calls": [read("new.txt"), read("sub"), bash("ls nowhere")]},
        {"text": "Written."},
    ],
}
"""Scripts by name, as in wire/model_turns.py."""
