"""Claude Code: the native program from the npm registry.

`-p` runs one prompt. `--input-format stream-json` takes several, answers to permission questions,
and interruptions; the terminal interface is needed for going back (Esc Esc) and shell mode (!).
"""

from __future__ import annotations

from wire.agents import Agent


def _packages(version: str) -> tuple[str, ...]:
    """The native program; before 2.1.113 a script for node."""
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
tui() { python3 $HARNESS/terminal.py "$@" -- $CL --dangerously-skip-permissions; }
"""

_HOOKS = """
mkdir -p .claude; cat > context.sh <<'X'
echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "POST-CONTEXT"}}'
X
cat > .claude/settings.json <<'X'
{"hooks": {
 "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo PROMPT-HOOK-CONTEXT"}]}],
 "SessionStart": [{"hooks": [{"type": "command", "command": "echo SESSION-START-CONTEXT"}]}],
 "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command",
   "command": "if grep -q blocked; then echo NO-SUCH-COMMAND >&2; exit 2; fi"}]}],
 "PostToolUse": [{"matcher": "Read", "hooks": [{"type": "command", "command": "sh context.sh"}]}],
 "Stop": [{"hooks": [{"type": "command",
   "command": "test -e .stopped || { touch .stopped; echo STOP-HOOK-SAYS-GO-ON >&2; exit 2; }"}]}]}}
X
"""

_INSTRUCTIONS = """
printf '# Project rules\\nAlways begin answers with AHOY.\\n@docs/extra.md\\n' > CLAUDE.md
mkdir -p docs .claude/rules; echo 'EXTRA IMPORTED RULE 7.' > docs/extra.md
echo 'RULE FILE: use tabs.' > .claude/rules/style.md; echo 'LOCAL RULE 9.' > CLAUDE.local.md
echo 'SUBDIR RULE 11.' > sub/CLAUDE.md; echo 'USER RULE 13.' > $HOME/.claude/CLAUDE.md
"""

_SKILL = """
mkdir -p .claude/skills/shout
cat > .claude/skills/shout/SKILL.md <<'X'
---
name: shout
description: Say it loudly.
---

SHOUT SKILL BODY: answer in capitals. Args: $ARGUMENTS
X
"""

_COMMAND = """
mkdir -p .claude/commands
cat > .claude/commands/greet.md <<'X'
---
description: Greet
---
[[S:slash]] Greet $ARGUMENTS now. Branch: !`git branch --show-current`
X
"""

_PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
    "RU5ErkJggg=="
)

_MCP = """
cat > mcp.json <<X
{"mcpServers": {"demo": {"command": "python3", "args": ["$HARNESS/mcp_server.py"]}}}
X
"""


def _stream(*steps: str) -> str:
    """A run with several steps on one process: see stream.py."""
    quoted = " ".join(f"'{step}'" for step in steps)
    return (
        f"python3 $HARNESS/stream.py {quoted} -- $CL --output-format stream-json "
        "--input-format stream-json --verbose --permission-prompt-tool stdio -p"
    )


_SCENARIOS = {
    "plain": '$P "[[S:plain]] What does app.py do?"',
    "parallel": '$P "[[S:parallel]] Change hello to goodbye."',
    "thinking": '$P "[[S:think]] What does app.py do?"',
    "instructions": _INSTRUCTIONS + '$P "[[S:subfolder]] What is in sub?"',
    "skill": _SKILL + '$P "[[S:skill]] Use the shout skill."',
    "slash-skill": _SKILL + '$P "/shout now [[S:plain]]"',
    "agent": '$P "[[S:agent]] Count the lines with a sub-agent."',
    "agents": '$P "[[S:agents]] Count the lines with two sub-agents."',
    "agent-background": '$P "[[S:agentbg]] Count the lines in the background."',
    "background": '$P "[[S:background]] Run something in the background."',
    "resume": '$P "[[S:plain]] What does app.py do?"; $P --continue "[[S:second]] And data.txt?"',
    "fork": '$P "[[S:plain]] What does app.py do?"; '
    '$P --continue --fork-session "[[S:second]] And data.txt?"',
    "command": _COMMAND + '$P "/greet Bob"',
    "compact": '$P "[[S:plain]] What does app.py do?"; $P --continue "/compact keep the names"; '
    '$P --continue "[[S:third]] Go on."',
    "compact-auto": '$P "[[S:full]] Do a long job."; $P --continue "[[S:second]] And data.txt?"',
    "mention": '$P "[[S:mention]] Look at @app.py and @sub please"',
    "hooks": _HOOKS + '$P "[[S:hooks]] What does app.py do?"',
    "long": '$P "[[S:long]] Do many steps."',
    "big": 'python3 -c "print(chr(10).join(str(i)*40 for i in range(20000)))" > big.txt; '
    '$P "[[S:big]] Look at large output."',
    "image": f'echo {_PIXEL} | base64 -d > dot.png; $P "[[S:image]] Look at dot.png."',
    "mcp": _MCP + '$P "[[S:search]] Add 2 and 3." --mcp-config mcp.json',
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
}  # fmt: skip

AGENT = Agent(
    name="claude-code",
    versions=("2.1.330", "2.1.310", "2.1.290", "2.1.260", "2.1.42", "2.0.76"),
    packages=_packages,
    setup=_SETUP,
    scenarios=_SCENARIOS,
    logs=(".claude/projects",),
    limits={"long": 120, "tui": 60, "tui-rewind": 60},
)
