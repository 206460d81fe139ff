"""Claude Code: the native program from the npm registry.

`-p` runs one prompt. `--input-format stream-json` accepts several prompts, answers to permission
questions, and interruptions; going back (Esc Esc) and shell mode (!) need the terminal interface.
"""

from __future__ import annotations

from wire.agents import DOT, DOT_FILE, Agent
from wire.claude_projects import (
    ALL_HOOKS,
    COMMAND,
    EARLIER,
    HOOKS,
    INSTRUCTIONS,
    JSON_HOOKS,
    MCP,
    NESTED,
    NOTEBOOK,
    PDF,
    QUOTED,
    SKILL,
    SKILLS,
    STOPPING_HOOKS,
    STYLE,
)


def _packages(version: str) -> tuple[str, ...]:
    """Returns the packages: the native program; before 2.1.113 a script for Node.js."""
    number = tuple(map(int, version.split(".")))
    name = "claude-code-linux-x64" if number >= (2, 1, 113) else "claude-code"
    return (f"npm:@anthropic-ai/{name}@{version}",)


_SETUP = """
export ANTHROPIC_BASE_URL=http://127.0.0.1:$PORT ANTHROPIC_API_KEY=dummy-key IS_SANDBOX=1
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 DISABLE_ERROR_REPORTING=1
CL=$(ls $INSTALL/node_modules/@anthropic-ai/claude-code-linux-x64/claude 2>/dev/null ||
     echo $INSTALL/node_modules/@anthropic-ai/claude-code/cli.js)
P="$CL --dangerously-skip-permissions --output-format json -p"
ASK="$CL --output-format json -p"
mkdir -p $HOME/.claude
cat > $HOME/.claude.json <<X
{"hasCompletedOnboarding": true, "theme": "dark", "bypassPermissionsModeAccepted": true,
 "customApiKeyResponses": {"approved": ["dummy-key"], "rejected": []},
 "projects": {"$WORKDIR": {"hasTrustDialogAccepted": true,
                           "hasCompletedProjectOnboarding": true}}}
X
echo '{"skipDangerousModePermissionPrompt": true}' > $HOME/.claude/settings.json
tui() { python3 $HARNESS/terminal.py "$@" -- $CL --dangerously-skip-permissions $OPTIONS; }
"""


def _skipping(command: str) -> str:
    """Returns the command of a run without permission questions."""
    return command.replace("--permission-prompt-tool stdio", "--dangerously-skip-permissions")


def _stream(*steps: str) -> str:
    """Returns the command of a run with several steps in one process: see stream.py."""
    quoted = " ".join(f"'{step}'" for step in steps)
    return (
        f"python3 $HARNESS/stream.py {quoted} -- $CL --output-format stream-json "
        "--input-format stream-json --verbose --permission-prompt-tool stdio -p"
    )


_SCENARIOS = {
    "plain": '$P "[[S:plain]] What does app.py do?"',
    "parallel": '$P "[[S:parallel]] Change hello to goodbye."',
    "thinking": '$P "[[S:think]] What does app.py do?"',
    "instructions": INSTRUCTIONS + '$P "[[S:subfolder]] What is in sub?"',
    "skill": SKILL + '$P "[[S:skill]] Use the shout skill."',
    "slash-skill": SKILL + '$P "/shout now [[S:plain]]"',
    "agent": '$P "[[S:agent]] Count the lines with a sub-agent."',
    "agents": '$P "[[S:agents]] Count the lines with two sub-agents."',
    "agent-background": '$P "[[S:agentbg]] Count the lines in the background."',
    "background": '$P "[[S:background]] Run something in the background."',
    "resume": '$P "[[S:plain]] What does app.py do?"; $P --continue "[[S:second]] And data.txt?"',
    "fork": '$P "[[S:plain]] What does app.py do?"; '
    '$P --continue --fork-session "[[S:second]] And data.txt?"',
    "command": COMMAND + '$P "/greet Bob"',
    "compact": '$P "[[S:plain]] What does app.py do?"; $P --continue "/compact keep the names"; '
    '$P --continue "[[S:third]] Go on."',
    "compact-auto": '$P "[[S:full]] Do a long job."; $P --continue "[[S:second]] And data.txt?"',
    "mention": '$P "[[S:mention]] Look at @app.py and @sub please"',
    "hooks": HOOKS + '$P "[[S:hooks]] What does app.py do?"',
    "long": '$P "[[S:long]] Do many steps."',
    "big": 'python3 -c "print(chr(10).join(str(i)*40 for i in range(20000)))" > big.txt; '
    '$P "[[S:big]] Look at large output."',
    "image": f'echo {DOT} | base64 -d > dot.png; $P "[[S:image]] Look at dot.png."',
    "mcp": MCP + '$P "[[S:search]] Add 2 and 3." --mcp-config mcp.json',
    "todo": '$P "[[S:todo]] Make a todo."',
    "append-system": '$P "[[S:plain]] What does app.py do?" --append-system-prompt "APPENDED 5."',
    "own-system": '$P "[[S:plain]] What does app.py do?" --system-prompt "You are OWN SYSTEM."',
    "plan": '$CL --permission-mode plan --output-format json -p "[[S:plan]] Plan a change."',
    "denied": _stream("user:[[S:denied]] Remove data.txt.", "deny:Leave it there.", "result"),
    "denied-parallel": _stream("user:[[S:denied2]] Do two things.", "deny:Not that.", "result"),
    "denied-mode": '$ASK "[[S:denied2]] Do two things."',
    "interrupted": _stream(
        "user:[[S:sleep]] Run a long command.", "wait:3", "interrupt", "result",
        "user:[[S:second]] What is in data.txt?", "result",
    ),
    "interrupted-parallel": _stream(
        "user:[[S:sleep2]] Run two.", "wait:3", "interrupt", "result",
        "user:[[S:second]] What is in data.txt?", "result",
    ),
    "interrupted-answer": _stream(
        "user:[[S:slow]] Answer slowly.", "wait:2", "interrupt", "result",
        "user:[[S:second]] What is in data.txt?", "result",
    ),
    "killed": '(timeout -s KILL 4 $P "[[S:sleep]] Run a long command."); '
    '$P --continue "[[S:second]] What is in data.txt?"',
    "error": '$P "[[S:overloaded]] This fails."; $P --continue "[[S:second]] And data.txt?"',
    "queued": _stream(
        "user:[[S:sleepshort]] Run a command.", "wait:2",
        "user:also tell me the date", "result", "result",
    ),
    "model": _stream(
        "user:[[S:plain]] What does app.py do?", "result", "model:claude-sonnet-4-6",
        "user:[[S:second]] And data.txt?", "result",
    ),
    "older-model": '$P "[[S:parallel]] Change hello." --model claude-sonnet-4-6; '
    '$P --continue "[[S:second]] And data.txt?" --model claude-sonnet-4-6',
    "small-model": '$P "[[S:plain]] What does app.py do?" --model haiku',
    "several": _stream(
        "user:[[S:plain]] What does app.py do?", "result",
        "user:[[S:second]] And data.txt?", "result", "user:[[S:third]] Go on.", "result",
    ),
    "stream-broken": '$P "[[S:broken]] What does app.py do?"',
    "stream-broken-call": '$P "[[S:brokencall]] What does app.py do?"',
    "stream-error": '$P "[[S:brokenlater]] What do app.py and data.txt hold?"',
    "busy": '$P "[[S:busy]] What does app.py do?"; $P --continue "[[S:second]] And data.txt?"',
    "cut-off": '$P "[[S:cutoff]] What does app.py do?"; $P --continue "[[S:second]] And data.txt?"',
    "denied-one": _stream(
        "user:[[S:denied3]] Make three files.", "allow", "deny:Not the second.", "allow", "result"
    ),
    "denied-silent": _stream(
        "user:[[S:denied3]] Make three files.", "allow", "deny:", "allow", "result",
        "user:[[S:second]] And data.txt?", "result",
    ),
    "denied-interrupted": _stream(
        "user:[[S:denied3]] Make three files.", "allow", "interrupt", "result",
        "user:[[S:second]] And data.txt?", "result",
    ),
    "backgrounds": _skipping(_stream(
        "user:[[S:backgrounds]] Run two in the background.", "result", "wait:3",
        "user:[[S:second]] And data.txt?", "result",
    )),
    "agents-background": _skipping(_stream(
        "user:[[S:agentsbg]] Count with two.", "result", "wait:6",
        "user:[[S:second]] And data.txt?", "result",
    )),
    "compact-middle": _skipping(_stream(
        "user:[[S:parallel]] Change hello.", "result", "user:/compact keep the names", "result",
        "user:[[S:second]] And data.txt?", "result", "user:[[S:third]] Go on.", "result",
    )),
    "compact-twice": '$P "[[S:plain]] What does app.py do?"; $P --continue "/compact"; '
    '$P --continue "[[S:second]] And data.txt?"; $P --continue "/compact"; '
    '$P --continue "[[S:parallel]] Go on."',
    "pdf": PDF + '$P "[[S:pdf]] Read page.pdf."; $P --continue "[[S:second]] And data.txt?"',
    "image-mentioned": f"echo {DOT} | base64 -d > dot.png; "
    '$P "[[S:second]] Look at @dot.png"; $P --continue "[[S:plain]] Go on."',
    "mcp-picture": MCP + '$P "[[S:picture]] Show it." --mcp-config mcp.json',
    "mcp-grows": MCP + '$P "[[S:grow]] Grow." --mcp-config mcp.json; '
    '$P --continue "[[S:second]] And data.txt?" --mcp-config mcp.json',
    "mcp-gone": MCP + '$P "[[S:search]] Add 2 and 3." --mcp-config mcp.json; '
    '$P --continue "[[S:second]] And data.txt?"',
    "plan-entered": '$P "[[S:enterplan]] Plan a change."',
    "plan-left": _stream(
        "mode:plan", "user:[[S:plan]] Plan a change.", "allow", "result",
        "user:[[S:second]] And data.txt?", "result",
    ),
    "plan-file": _stream(
        "mode:plan", "user:[[S:planfile]] Plan a change.", "allow", "result",
        "user:[[S:second]] And data.txt?", "result",
    ),
    "plan-refused": _stream(
        "mode:plan", "user:[[S:plan]] Plan a change.", "deny:Plan more.", "result",
        "mode:default", "user:[[S:third]] Go on.", "result",
    ),
    "hooks-json": JSON_HOOKS + '$P "[[S:parallel]] Change hello."; '
    '$P --continue "[[S:agent]] Count the lines."',
    **{
        f"hooks-stop-{tool.lower()}{suffix}": STOPPING_HOOKS
        + f'stop_after {tool}; $P "[[S:stopped]] Read two files."{option}; '
        f'$P --continue "[[S:second]] And data.txt?"{option}'
        for tool in ("Read", "Bash")
        for suffix, option in (("", ""), ("-older-model", " --model claude-sonnet-4-6"))
    },
    "hooks-json-older-model": JSON_HOOKS
    + '$P "[[S:parallel]] Change hello." --model claude-sonnet-4-6; '
    '$P --continue "[[S:agent]] Count the lines." --model claude-sonnet-4-6',
    "hooks-compact": JSON_HOOKS + '$P "[[S:plain]] What does app.py do?"; '
    '$P --continue "/compact"; $P --continue "[[S:third]] Go on."',
    "skills": SKILLS + '$P "[[S:skills]] Shout and whisper."; $P --continue "/compact"; '
    '$P --continue "[[S:second]] And data.txt?"',
    "tasks": '$P "[[S:tasks]] Do one task."; $P --continue "[[S:second]] And data.txt?"',
    "question": _stream("user:[[S:question]] Ask me.", "choose:Blue", "result"),
    "structured": '$P "[[S:structured]] What does app.py print?" --json-schema '
    '\'{"type": "object", "properties": {"greeting": {"type": "string"}}}\'',
    "files": '$P "[[S:files]] Write a file."; $P --continue "[[S:second]] And data.txt?"',
    "changed-outside": _skipping(_stream(
        "user:[[S:parallel]] Change hello.", "result", "shell:echo x = 2 >> app.py",
        "shell:echo four >> data.txt", "user:[[S:second]] And data.txt?", "result",
    )),
    "cleared": _stream(
        "user:[[S:plain]] What does app.py do?", "result", "user:/clear", "result",
        "user:[[S:second]] And data.txt?", "result",
    ),
    "max-turns": '$P "[[S:parallel]] Change hello." --max-turns 2; '
    '$P --continue "[[S:second]] And data.txt?"',
    "own-agents": '$P "[[S:agent]] Count." --agents '
    '\'{"general-purpose": {"description": "Counts.", "prompt": "OWN AGENT PROMPT 8.", '
    '"tools": ["Bash"]}}\'',
    "few-tools": '$P "[[S:plain]] What does app.py do?" --tools Read,Bash; '
    '$P --continue "[[S:second]] And data.txt?" --tools Bash',
    "resume-earlier": EARLIER + '$P "[[S:parallel]] Change hello."; '
    '$P --continue "[[S:third]] Go on."; $P $(earlier assistant) "[[S:second]] And data.txt?"',
    "resume-earlier-fork": EARLIER + '$P "[[S:parallel]] Change hello."; '
    '$P --continue "[[S:third]] Go on."; '
    '$P $(earlier assistant) --fork-session "[[S:second]] And data.txt?"',
    "fork-compact": '$P "[[S:plain]] What does app.py do?"; $P --continue "/compact"; '
    '$P --continue --fork-session "[[S:second]] And data.txt?"; $P --continue "[[S:third]] Go on."',
    "killed-parallel": '(timeout -s KILL 5 $P "[[S:sleep2]] Run two."); '
    '$P --continue "[[S:second]] What is in data.txt?"',
    "tui-compact": 'tui "[[S:plain]] What does app.py do?" wait:4 "/compact" wait:5 '
    '"[[S:second]] And data.txt?" wait:5',
    "tui-shell": 'tui "!seq 1 20000" wait:3 "[[S:plain]] What does app.py do?" wait:4 '
    '"!ls nowhere" wait:2 "[[S:second]] And data.txt?" wait:4',
    "tui-queued": 'tui "[[S:sleepshort]] Run a command." wait:1 "also tell me the date" wait:7 '
    '"[[S:second]] And data.txt?" wait:4',
    "tui-rewind-code": 'tui "[[S:parallel]] Change hello." wait:7 "[[S:third]] Go on." wait:3 '
    'key:esc wait:1 key:esc wait:2 key:up key:up key:enter wait:1 key:enter wait:2 '
    '"[[S:second]] And data.txt?" wait:4',
    "tui-plan": 'tui key:shift-tab key:shift-tab wait:1 "[[S:plan]] Plan a change." wait:5 '
    'key:enter wait:4 "[[S:second]] And data.txt?" wait:4',
    "system-later": '$P "[[S:plain]] What does app.py do?"; '
    '$P --continue "[[S:second]] And data.txt?" --append-system-prompt "APPENDED LATER 6."; '
    '$P --continue "[[S:third]] Go on."',
    "tools-later": '$P "[[S:plain]] What does app.py do?" --tools Read,Bash; '
    '$P --continue "[[S:second]] And data.txt?"; '
    '$P --continue "[[S:third]] Go on." --disallowedTools WebFetch,Write',
    "mcp-later": MCP + '$P "[[S:plain]] What does app.py do?"; '
    '$P --continue "[[S:search]] Add 2 and 3." --mcp-config mcp.json',
    "mcp-crashes": MCP + '$P "[[S:crash]] Crash." --mcp-config mcp.json; '
    '$P --continue "[[S:second]] And data.txt?" --mcp-config mcp.json',
    "nested": NESTED + _skipping(_stream(
        "user:[[S:nested]] Read them all.", "result", "shell:echo CHANGED RULE 6. > CLAUDE.md",
        "user:/compact", "result", "user:[[S:nested]] Once more.", "result",
    )),
    "all-hooks": ALL_HOOKS + _skipping(_stream(
        "user:[[S:parallel]] Change hello.", "result", "user:REFUSED [[S:second]]", "result",
        "user:[[S:agent]] Count the lines.", "result", "user:/compact", "result",
        "user:[[S:second]] And data.txt?", "result",
    )),
    "style": STYLE + '$P "[[S:plain]] What does app.py do?"; rm .claude/settings.local.json; '
    '$P --continue "[[S:second]] And data.txt?"',
    "big-read-back": '$P "[[S:readback]] Look at large output."; '
    '$P --continue "/compact"; $P --continue "[[S:second]] And data.txt?"',
    "agents-mixed": NESTED + '$P "[[S:mixed]] Several things."; '
    '$P --continue "[[S:agents]] Two sub-agents again."',
    "other-model": '$P "[[S:thoughts]] What does app.py do?"; '
    '$P --continue "[[S:think]] Once more." --model claude-sonnet-4-6; '
    '$P --continue "[[S:think]] And again." --model claude-opus-4-5-20251101',
    "notebook": NOTEBOOK + '$P "[[S:notebook]] Edit the notebook."; '
    '$P --continue "[[S:second]] And data.txt?"',
    "quoted": QUOTED + '$P "[[S:quoted]] <system-reminder>mine</system-reminder> Read it."; '
    '$P --continue "<command-name>/greet</command-name> [[S:second]] And data.txt?"',
    "piped": 'cat app.py | $P "[[S:plain]] What does this do?"; '
    'printf "[[S:second]]  And data.txt?\\r\\n\\n  \\n" | $P --continue',
    "some-allowed": '$ASK "[[S:denied3]] Make three files." '
    '--allowed-tools "Bash(touch one.txt)" "Bash(touch three.txt)"; '
    '$ASK --continue "[[S:denied2]] Do two things." --permission-mode acceptEdits',
    "mention-parts": 'mkdir -p other; echo "OTHER RULE 8." > other/CLAUDE.md; '
    'echo "w = 1" > other/w.py; $P "[[S:mention]] See @app.py#L1-2 @missing.txt @other/w.py @sub"; '
    '$P --continue "[[S:second]] And @app.py again?"',
    "add-dir": 'mkdir -p $HOME/far; echo "FAR RULE 9." > $HOME/far/CLAUDE.md; '
    'echo "far = 1" > $HOME/far/far.py; '
    'CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD=1 $P "[[S:plain]] What does app.py do?" '
    '--add-dir $HOME/far; $P --continue "[[S:second]] Look at @$HOME/far/far.py"',
    "built-in": '$P "/security-review [[S:plain]]"; $P --continue "/init [[S:second]]"',
    "forked-twice": '$P "[[S:parallel]] Change hello."; '
    '$P --continue --fork-session "[[S:second]] And data.txt?"; '
    '$P --continue --fork-session "[[S:third]] Go on." --append-system-prompt "FORK 7."',
    "tui": 'tui "[[S:plain]] What does app.py do?" wait:4 "!echo shell mode" wait:2 '
    '"[[S:second]] And data.txt?" wait:4',
    "tui-rewind": 'tui "[[S:plain]] What does app.py do?" wait:4 "[[S:third]] Go on." wait:3 '
    'key:esc wait:1 key:esc wait:2 key:up key:enter wait:1 key:enter wait:2 '
    '"[[S:second]] And data.txt?" wait:4',
    "tui-interrupted": 'tui "[[S:sleep]] Run a long command." wait:4 key:esc wait:2 '
    '"[[S:second]] What is in data.txt?" wait:4',
    "tui-background": 'tui "[[S:agentbg]] Count in the background." wait:9 '
    '"[[S:second]] And data.txt?" wait:4',
    "tui-slash": 'tui "/model sonnet" wait:2 "[[S:plain]] What does app.py do?" wait:4 "/cost" '
    'wait:2 "[[S:second]] And data.txt?" wait:4',
    "paced": '$P "[[S:paced]] What does app.py do?"; $P --continue "[[S:second]] And data.txt?"',
    "paced-interrupted": _skipping(_stream(
        "user:[[S:paced]] What does app.py do?", "wait:3", "interrupt", "result", "wait:2",
        "user:[[S:second]] And data.txt?", "result",
    )),
    "paced-queued": _skipping(_stream(
        "user:[[S:paced]] What does app.py do?", "wait:2", "user:also tell me the date",
        "result", "user:[[S:second]] And data.txt?", "result",
    )),
    "agents-broken": '$P "[[S:agentsbroken]] Count."; $P --continue "[[S:third]] Go on."',
    "paced-broken": '$P "[[S:pacedbroken]] What does app.py do?"; '
    '$P --continue "[[S:third]] Go on."',
    "tui-paced": 'tui "[[S:paced]] What does app.py do?" wait:3 "a message in between" wait:5 '
    'key:esc wait:2 "[[S:paced]] Once more." wait:2 key:esc wait:2 '
    '"[[S:second]] And data.txt?" wait:4',
    "fork-few-tools": '$P "[[S:plain]] What does app.py do?"; '
    '$P --continue --fork-session "[[S:second]] And data.txt?" --tools Bash; '
    '$P --continue "[[S:third]] Go on." --tools Bash,Read',
    "tui-fork-few-tools": 'tui "[[S:plain]] What does app.py do?" wait:4; '
    'OPTIONS="--continue --fork-session --tools Bash" tui "[[S:second]] And data.txt?" wait:4; '
    'OPTIONS="--continue --tools Read,Bash" tui "[[S:third]] Go on." wait:4',
    "killed-idle": _skipping(_stream(
        "user:[[S:plain]] What does app.py do?", "result",
        "user:[[S:second]] And data.txt?", "result", "wait:2", "kill",
    )) + '; $P --continue "[[S:third]] Go on." --tools Bash',
    "image-pasted": DOT_FILE + _skipping(_stream(
        "image:[[S:plain]] What is this?", "result", "user:[[S:second]] And data.txt?", "result",
    )),
    "odd": '$P "[[S:odd]] Odd output: \U0001f600 \u2028 &amp; <b>"; '
    '$P --continue "[[S:third]] Go on."',
    "faulty": '$P "[[S:faulty]] Call wrongly."; $P --continue "[[S:third]] Go on."',
    "refusal": '$P "[[S:refusal]] Do it."; $P --continue "[[S:third]] Go on."',
    "task-output": '$P "[[S:taskoutput]] Run it."; $P --continue "[[S:third]] Go on."',
    "agent-told": '$P "[[S:tell]] Count twice."; $P --continue "[[S:third]] Go on."',
    "settings": '$P "[[S:paced]] What does app.py do?" --effort low '
    '--settings \'{"env": {"MAX_THINKING_TOKENS": "2000"}, "language": "german"}\'; '
    '$P --continue "[[S:third]] Go on." --disable-slash-commands',
    "tui-moved": 'tui "[[S:sleep]] Run a long command." wait:4 key:ctrl-b key:ctrl-b wait:3 '
    '"[[S:second]] And data.txt?" wait:4',
    "local-commands": _skipping(_stream(
        "user:/context", "result", "user:[[S:plain]] What does app.py do?", "result",
        "user:/cost", "result", "user:[[S:second]] And data.txt?", "result",
    )),
}  # fmt: skip

AGENT = Agent(
    name="claude-code",
    versions=("2.1.332", "2.1.330", "2.1.310", "2.1.290", "2.1.260", "2.1.42", "2.0.76"),
    packages=_packages,
    setup=_SETUP,
    scenarios=_SCENARIOS,
    logs=(".claude/projects",),
    limits={"long": 120, "tui": 60, "tui-rewind": 60, "tui-rewind-code": 60, "settings": 120},
)
