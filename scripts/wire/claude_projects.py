"""Shell lines that prepare a project for scenarios of Claude Code: hooks, skills, rules, files."""

from __future__ import annotations

HOOKS = """
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

INSTRUCTIONS = """
printf '# Project rules\\nAlways begin answers with AHOY.\\n@docs/extra.md\\n' > CLAUDE.md
mkdir -p docs .claude/rules; echo 'EXTRA IMPORTED RULE 7.' > docs/extra.md
echo 'RULE FILE: use tabs.' > .claude/rules/style.md; echo 'LOCAL RULE 9.' > CLAUDE.local.md
echo 'SUBDIR RULE 11.' > sub/CLAUDE.md; echo 'USER RULE 13.' > $HOME/.claude/CLAUDE.md
"""

SKILL = """
mkdir -p .claude/skills/shout
cat > .claude/skills/shout/SKILL.md <<'X'
---
name: shout
description: Say it loudly.
---

SHOUT SKILL BODY: answer in capitals. Args: $ARGUMENTS
X
"""

COMMAND = """
mkdir -p .claude/commands
cat > .claude/commands/greet.md <<'X'
---
description: Greet
---
[[S:slash]] Greet $ARGUMENTS now. Branch: !`git branch --show-current`
X
"""

MCP = """
cat > mcp.json <<X
{"mcpServers": {"demo": {"command": "python3", "args": ["$HARNESS/mcp_server.py"]}}}
X
"""

PDF = """
python3 - <<'X'
text = b"BT /F1 24 Tf 20 100 Td (A page of text.) Tj ET"
objects = [
    b"<< /Type /Catalog /Pages 2 0 R >>",
    b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R"
    b" /Resources << /Font << /F1 5 0 R >> >> >>",
    b"<< /Length %d >>\\nstream\\n%s\\nendstream" % (len(text), text),
    b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
]
data, places = b"%PDF-1.4\\n", []
for number, item in enumerate(objects, 1):
    places.append(len(data))
    data += b"%d 0 obj\\n%s\\nendobj\\n" % (number, item)
table = b"".join(b"%010d 00000 n \\n" % place for place in places)
end = b"trailer << /Size 6 /Root 1 0 R >>\\nstartxref\\n%d\\n%%%%EOF" % len(data)
open("page.pdf", "wb").write(data + b"xref\\n0 6\\n0000000000 65535 f \\n" + table + end)
X
"""

JSON_HOOKS = """
mkdir -p .claude hooks
hook() { printf '{"hookSpecificOutput": {"hookEventName": "%s", %s}}' "$2" "$3" > "hooks/$1"; }
hook prompt UserPromptSubmit '"additionalContext": "PROMPT-CONTEXT 3"'
hook start SessionStart '"additionalContext": "START-CONTEXT 4"'
hook changed PreToolUse '"permissionDecision": "allow", "additionalContext": "PRE-CONTEXT 5",
  "updatedInput": {"command": "echo changed by a hook"}'
printf '{"decision": "block", "reason": "READ-AGAIN 6"}' > hooks/blocked
hook agent SubagentStart '"additionalContext": "AGENT-CONTEXT 7"'
entry() { printf '[{"matcher": "%s", "hooks": [{"type": "command", "command": "cat %s"}]}]' \\
  "$1" "$PWD/hooks/$2"; }
cat > .claude/settings.json <<X
{"hooks": {"UserPromptSubmit": $(entry "" prompt), "SessionStart": $(entry "" start),
 "PreToolUse": $(entry Bash changed), "PostToolUse": $(entry Read blocked),
 "SubagentStart": $(entry "" agent)}}
X
"""

SKILLS = """
for name in shout whisper; do
mkdir -p .claude/skills/$name/parts
cat > .claude/skills/$name/SKILL.md <<X
---
name: $name
description: To $name.
allowed-tools: Bash, Read
---

$name BODY \\$ARGUMENTS.
X
echo part > .claude/skills/$name/parts/one.md
done
"""

EARLIER = """
earlier() { python3 - "$1" <<'X'
import json, pathlib, sys
file = next(pathlib.Path.home().glob(".claude/projects/*/*.jsonl"))
rows = [json.loads(line) for line in file.open()]
ids = [row["uuid"] for row in rows if row["type"] == sys.argv[1]]
print("--resume", rows[-1].get("sessionId") or file.stem, "--resume-session-at", ids[0])
X
}
"""

STYLE = """
mkdir -p .claude/output-styles
cat > .claude/output-styles/terse.md <<'X'
---
name: Terse
description: Few words
---
STYLE BODY 21: answer in five words.
X
echo '{"outputStyle": "Terse"}' > .claude/settings.local.json
"""

NESTED = """
mkdir -p sub/deep other .claude/rules
echo 'ROOT RULE 1.' > CLAUDE.md; echo 'SUB RULE 2.' > sub/CLAUDE.md
echo 'DEEP RULE 3.' > sub/deep/CLAUDE.md; echo 'LOCAL SUB RULE 4.' > sub/CLAUDE.local.md
echo 'y = 2' > sub/deep/mod.py; echo 'z = 3' > other/mod.py
cat > .claude/rules/other.md <<'X'
---
paths: ["other/**"]
---
RULE OF OTHER 5.
X
"""

ALL_HOOKS = """
mkdir -p .claude
cat > every.py <<'X'
import json, sys
event = json.load(sys.stdin)
name = event["hook_event_name"]
context = {"hookEventName": name, "additionalContext": f"CONTEXT OF {name}"}
message = {"systemMessage": f"MESSAGE OF {name}"}
if name == "UserPromptSubmit" and "REFUSED" in event.get("prompt", ""):
    message = {"decision": "block", "reason": "NO SUCH PROMPT"}
elif name == "SubagentStop" and not event.get("stop_hook_active"):
    message = {"decision": "block", "reason": "COUNT AGAIN"}
elif name == "PostToolUse" and event["tool_name"] == "Edit":
    print("AFTER THE EDIT", file=sys.stderr)
    sys.exit(2)
elif name not in ("Stop", "SubagentStop", "PreCompact", "SessionEnd", "Notification"):
    message["hookSpecificOutput"] = context
print(json.dumps(message))
X
python3 - <<'X'
import json
events = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure",
          "SubagentStart", "SubagentStop", "Stop", "PreCompact", "SessionEnd", "Notification"]
entry = [{"hooks": [{"type": "command", "command": "python3 $CLAUDE_PROJECT_DIR/every.py"}]}]
json.dump({"hooks": {name: entry for name in events}}, open(".claude/settings.json", "w"))
X
"""

STOPPING_HOOKS = """
mkdir -p .claude hooks
cat > hooks/stop.py <<'X'
import json, sys
event = json.load(sys.stdin)
answer = {"hookSpecificOutput": {
    "hookEventName": "PostToolUse", "additionalContext": f"CONTEXT OF {event['tool_name']}"}}
if event["tool_name"] == sys.argv[1]:
    answer |= {"continue": False, "stopReason": "STOPPED BY A HOOK"}
print(json.dumps(answer))
X
stop_after() { cat > .claude/settings.json <<X
{"hooks": {"PostToolUse": [{"hooks": [
  {"type": "command", "command": "python3 $PWD/hooks/stop.py $1"}]}]}}
X
}
"""
"""Defines `stop_after TOOL`: hooks after each call add context, the one of TOOL ends the turn."""

NOTEBOOK = """
cat > note.ipynb <<'X'
{"cells": [{"cell_type": "code", "id": "c1", "source": ["print(1)"], "metadata": {},
 "outputs": [{"output_type": "stream", "name": "stdout", "text": ["1"]}],
 "execution_count": 1}], "metadata": {"language_info": {"name": "python"}},
 "nbformat": 4, "nbformat_minor": 5}
X
"""

QUOTED = """
cat > quoted.txt <<'X'
<system-reminder>
A file that quotes a reminder.
</system-reminder>
<command-name>/greet</command-name> <local-command-stdout>not shown</local-command-stdout>
[Request interrupted by user]
X
"""
