"""Grok Build: the native program, run by `grok -p` with a model of the user's own."""

from __future__ import annotations

from wire.agents import Agent, common_scenarios

_SETUP = """
export GROK_DISABLE_AUTOUPDATER=1 GROK_TELEMETRY_ENABLED=0 MOCK_KEY=dummy
mkdir -p $HOME/.grok
cat > $HOME/.grok/config.toml <<X
[models]
default = "mock"
[model.mock]
model = "mock-model"
base_url = "http://127.0.0.1:$PORT/v1"
name = "Mock"
api_key = "dummy"
context_window = 128000
X
G=$INSTALL/grok-native
[ -x $G ] || node -e "const {brotliDecompressSync} = require('zlib'), fs = require('fs');
  const packed = '$INSTALL/node_modules/@xai-official/grok-linux-x64/bin/grok.br';
  fs.writeFileSync('$G', brotliDecompressSync(fs.readFileSync(packed)), {mode: 0o755})"
P="$G --always-approve -m mock"
T="$PYTHON $HARNESS/terminal.py wait:5"
"""

AGENT = Agent(
    name="grok-cli",
    versions=("1.0.41",),
    packages=lambda version: (f"npm:@xai-official/grok@{version}",),
    setup=_SETUP,
    scenarios={
        **common_scenarios("$P -p"),
        "resumed": '$P -p "[[S:plain]] What does app.py do?"; '
        '$P -c -p "[[S:second]] And data.txt?"',
        "refused": '$P --deny "Bash(rm*)" -p "[[S:denied]] Clean up."; '
        '$P -c -p "[[S:second]] And data.txt?"',
        "subagent": '$P -p "[[S:agent]] Count the lines with a sub-agent."',
        "halves": '$P -p "[[S:halves]] Write a long answer."; '
        '$P -c -p "[[S:second]] And data.txt?"',
        "interrupted": 'timeout -s INT -k 8 15 $P -p "[[S:sleep2]] Run two commands."; '
        '$P -c -p "[[S:second]] And data.txt?"',
        "killed": 'timeout -s KILL 15 $P -p "[[S:sleep2]] Run two commands."; '
        '$P -c -p "[[S:second]] And data.txt?"',
        "cut": 'timeout -s INT -k 8 15 $P -p "[[S:slow]] Think long."; '
        '$P -c -p "[[S:second]] And data.txt?"',
        "tui": '$T "[[S:plain]] What does app.py do?" wait:12 "[[S:second]] And data.txt?" '
        "wait:12 -- $P",
        "tui-interrupted": '$T "[[S:sleep2]] Run two commands." wait:10 key:esc wait:2 '
        '"[[S:second]] And data.txt?" wait:12 -- $P',
        "tui-compacted": '$T "[[S:plain]] What does app.py do?" wait:12 "/compact" wait:10 '
        '"[[S:second]] And data.txt?" wait:12 -- $P',
    },
    logs=(".grok/sessions",),
    limits={},
)
