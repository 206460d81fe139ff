"""GitHub Copilot CLI: the native program, offline, with a model provider of the user's own."""

from __future__ import annotations

from wire.agents import Agent, common_scenarios

_SETUP = """
export COPILOT_OFFLINE=true COPILOT_AUTO_UPDATE=false COPILOT_MODEL=mock-model
export COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:$PORT/v1 COPILOT_PROVIDER_API_KEY=dummy
C=$INSTALL/node_modules/@github/copilot-linux-x64/copilot
P="$C --allow-all-tools --no-color"
T="$PYTHON $HARNESS/terminal.py wait:12 key:enter wait:6"
"""

_SKILL = """
mkdir -p .github/skills/shout
printf -- '---\\nname: shout\\ndescription: Say it loudly.\\n---\\n\\nSHOUT SKILL BODY.\\n' \\
  > .github/skills/shout/SKILL.md
"""

AGENT = Agent(
    name="copilot-cli",
    versions=("1.0.102",),
    packages=lambda version: (f"npm:@github/copilot@{version}",),
    setup=_SETUP,
    scenarios={
        **common_scenarios("$P -p"),
        "failing": '$P -p "[[S:failing]] Try them."',
        "skill": _SKILL + '$P -p "[[S:skill]] Use the shout skill."',
        "resumed": '$P -p "[[S:plain]] What does app.py do?"; '
        '$P --continue -p "[[S:second]] And data.txt?"',
        "parallel-resumed": '$P -p "[[S:parallel]] Change hello to goodbye."; '
        '$P --continue -p "[[S:second]] And data.txt?"',
        "refused": '$P --deny-tool="shell(rm)" -p "[[S:denied]] Clean up."; '
        '$P --continue -p "[[S:second]] And data.txt?"',
        "subagent": '$P -p "[[S:agent]] Count the lines with a sub-agent."',
        "subagents": '$P -p "[[S:agents]] Count the lines with two sub-agents."',
        "halves": '$P -p "[[S:halves]] Write a long answer."; '
        '$P --continue -p "[[S:second]] And data.txt?"',
        "interrupted": 'timeout -s INT -k 8 12 $P -p "[[S:sleep2]] Run two commands."; '
        '$P --continue -p "[[S:second]] And data.txt?"',
        "killed": 'timeout -s KILL 12 $P -p "[[S:sleep2]] Run two commands."; '
        '$P --continue -p "[[S:second]] And data.txt?"',
        "cut": 'timeout -s INT -k 8 12 $P -p "[[S:slow]] Think long."; '
        '$P --continue -p "[[S:second]] And data.txt?"',
        "anthropic": "export COPILOT_PROVIDER_TYPE=anthropic; "
        "export COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:$PORT; "
        '$P -p "[[S:parallel]] Change hello to goodbye."',
        "responses": "export COPILOT_PROVIDER_WIRE_API=responses; "
        '$P -p "[[S:parallel]] Change hello to goodbye."',
        "tui-interrupted": '$T "[[S:sleep2]] Run two commands." wait:10 key:esc wait:2 '
        '"[[S:second]] And data.txt?" wait:12 -- $P',
        "tui-compacted": '$T "[[S:plain]] What does app.py do?" wait:12 "/compact" wait:12 '
        '"[[S:second]] And data.txt?" wait:12 -- $P',
        "tui-compacted-twice": '$T "[[S:plain]] What does app.py do?" wait:12 '
        '"[[S:second]] And data.txt?" wait:12 "/compact" wait:12 "[[S:third]] Go on." wait:10 '
        '"/compact" wait:12 "[[S:second]] Once more." wait:12 -- $P',
        "tui-cleared": '$T "[[S:plain]] What does app.py do?" wait:12 "/clear" wait:4 '
        '"[[S:second]] And data.txt?" wait:12 -- $P',
    },
    logs=(".copilot/session-state",),
    limits={},
)
