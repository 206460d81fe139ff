"""opencode: the native program from the npm registry, run by `opencode run`."""

from __future__ import annotations

from wire.agents import DOT_FILE, Agent

_SETUP = """
export OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1
export OPENCODE_DISABLE_LSP_DOWNLOAD=1 XDG_DATA_HOME=$HOME/.local/share
export XDG_CONFIG_HOME=$HOME/.config XDG_STATE_HOME=$HOME/.local/state XDG_CACHE_HOME=$HOME/.cache
mkdir -p $HOME/.config/opencode
cat > $HOME/.config/opencode/opencode.json <<X
{"autoupdate": false, "share": "disabled", "permission": "allow",
 "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "Mock",
   "options": {"baseURL": "http://127.0.0.1:$PORT/v1", "apiKey": "dummy"},
   "models": {"mock-model": {"name": "Mock", "tool_call": true,
     "modalities": {"input": ["text", "image"], "output": ["text"]}, "attachment": true,
     "limit": {"context": 200000, "output": 8000}}}}},
 "agent": {"general-purpose": {"mode": "subagent", "description": "For any task."}},
 "model": "mock/mock-model", "small_model": "mock/mock-model"}
X
P="$(find $INSTALL/node_modules -path '*linux-x64/bin/opencode' -type f | head -1) run"
P="$P -m mock/mock-model"
checkpoint() {
  python3 -c "import sqlite3,sys; c = sqlite3.connect(sys.argv[1]); \\
c.execute('pragma wal_checkpoint(truncate)'); c.execute('pragma journal_mode=delete')" \\
    $HOME/.local/share/opencode/opencode.db
  mkdir -p $HOME/logs; cp $HOME/.local/share/opencode/opencode.db $HOME/logs/
}
trap checkpoint EXIT
"""

_INSTRUCTIONS = """
printf '# Project rules\\nAlways begin answers with AHOY.\\n' > AGENTS.md
"""

AGENT = Agent(
    name="opencode",
    versions=("1.18.33",),
    packages=lambda version: (f"npm:opencode-ai@{version}",),
    setup=_SETUP,
    scenarios={
        "plain": '$P "[[S:plain]] What does app.py do?"',
        "parallel": '$P "[[S:parallel]] Change hello to goodbye, see @app.py."',
        "thinking": '$P "[[S:think]] What does app.py do?"',
        "instructions": _INSTRUCTIONS + '$P "[[S:subfolder]] What is in sub?"',
        "resumed": '$P "[[S:plain]] What does app.py do?"; '
        '$P --continue "[[S:second]] And data.txt?"',
        "interrupted": 'timeout -s INT -k 8 25 $P "[[S:sleep2]] Run two commands."; '
        '$P --continue "[[S:second]] And data.txt?"',
        "subagent": '$P "[[S:agent]] Count the lines with a sub-agent."',
        "files": '$P "[[S:files]] Write new.txt."',
        "image": DOT_FILE + '$P "[[S:plain]] What is this?" -f dot.png',
        "cut": 'timeout -s INT -k 8 25 $P "[[S:slow]] Think long."; '
        '$P --continue "[[S:second]] And data.txt?"',
    },
    logs=("logs",),
    limits={"interrupted": 120, "cut": 180},
)
