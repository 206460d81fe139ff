"""Mistral Vibe, run by `vibe -p` and in its terminal interface against an API of OpenAI's shape."""

from __future__ import annotations

from wire.agents import RULES, Agent, common_scenarios

_SETUP = """
export VIBE_HOME=$HOME/.vibe MOCK_KEY=dummy; mkdir -p $VIBE_HOME
cat > $VIBE_HOME/config.toml <<X
active_model = "mock"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false
[[providers]]
name = "mock"
api_base = "http://127.0.0.1:$PORT/v1"
api_key_env_var = "MOCK_KEY"
api_style = "openai"
backend = "generic"
[[models]]
name = "mock-model"
provider = "mock"
alias = "mock"
X
V=$INSTALL/bin/vibe
P="$V --auto-approve --trust"
T="$PYTHON $HARNESS/terminal.py wait:9"
"""

AGENT = Agent(
    name="mistral-vibe",
    versions=("3.0.3",),
    packages=lambda version: (f"pip:mistral-vibe=={version}",),
    setup=_SETUP,
    scenarios={
        **common_scenarios("$P -p"),
        "resumed": '$P -p "[[S:plain]] What does app.py do?"; '
        '$P -c -p "[[S:second]] And data.txt?"',
        "rules-added": '$P -p "[[S:plain]] What does app.py do?"; '
        + RULES
        + '$P -c -p "[[S:second]] And data.txt?"',
        "refused": '$V --trust --agent ask -p "[[S:denied]] Clean up."; '
        '$P -c -p "[[S:second]] And data.txt?"',
        "halves": '$P -p "[[S:halves]] Write a long answer."; '
        '$P -c -p "[[S:second]] And data.txt?"',
        "interrupted": 'timeout -s INT -k 8 12 $P -p "[[S:sleep2]] Run two commands."; '
        '$P -c -p "[[S:second]] And data.txt?"',
        "cut": 'timeout -s INT -k 8 12 $P -p "[[S:slow]] Think long."; '
        '$P -c -p "[[S:second]] And data.txt?"',
        "tui": '$T "[[S:plain]] What does app.py do?" wait:12 "[[S:second]] And data.txt?" '
        "wait:12 -- $P",
        "tui-interrupted": '$T "[[S:sleep2]] Run two commands." wait:10 key:esc wait:2 '
        '"[[S:second]] And data.txt?" wait:12 -- $P',
        "tui-compacted": '$T "[[S:plain]] What does app.py do?" wait:12 "/compact" wait:10 '
        '"[[S:second]] And data.txt?" wait:12 -- $P',
        "tui-cleared": '$T "[[S:plain]] What does app.py do?" wait:12 "/clear" wait:4 '
        '"[[S:second]] And data.txt?" wait:12 -- $P',
    },
    logs=(".vibe/logs/session",),
    limits={},
    python="3.12",
)
