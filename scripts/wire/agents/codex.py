"""OpenAI Codex CLI: the native program from the npm registry, run by `codex exec`."""

from __future__ import annotations

from wire.agents import DOT_FILE, Agent

_SETUP = """
export CODEX_HOME=$HOME/.codex MOCK_KEY=dummy; mkdir -p $CODEX_HOME
cat > $CODEX_HOME/config.toml <<X
model = "gpt-5.1-codex"
model_provider = "mock"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:$PORT/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 1
stream_max_retries = 1
X
D=$INSTALL/node_modules/@openai
CX=$(find $D/ -path '*x86_64-unknown-linux*' -name codex -type f | head -1)
P="$CX exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox"
S() { $PYTHON $HARNESS/app_server.py "$@" -- $CX app-server; }
"""

_INSTRUCTIONS = """
printf '# Project rules\\nAlways begin answers with AHOY.\\n' > AGENTS.md
echo 'SUBDIR RULE 11.' > sub/AGENTS.md
"""

_SKILL = """
mkdir -p .codex/skills/shout .agents/skills/shout
printf -- '---\\nname: shout\\ndescription: Say it loudly.\\n---\\n\\nSHOUT SKILL BODY.\\n' |
  tee .codex/skills/shout/SKILL.md > .agents/skills/shout/SKILL.md
"""

_ITEMS = (
    '{"items": ['
    '{"type": "message", "role": "assistant", "content": '
    '[{"type": "output_text", "text": "Words of the editor."}]}, '
    '{"type": "message", "role": "developer", "content": '
    '[{"type": "input_text", "text": "A note of the editor."}]}]}'
)

AGENT = Agent(
    name="codex",
    versions=("0.171.0", "0.169.0", "0.157.0", "0.145.0", "0.128.0", "0.77.0"),
    packages=lambda version: (f"npm:@openai/codex@{version}",),
    setup=_SETUP,
    scenarios={
        "plain": '$P "[[S:plain]] What does app.py do?"',
        "parallel": '$P "[[S:parallel]] Change hello to goodbye."',
        "thinking": '$P "[[S:think]] What does app.py do?"',
        "instructions": _INSTRUCTIONS + '$P "[[S:subfolder]] What is in sub?"',
        "skill": _SKILL + '$P "[[S:plain]] Use the \\$shout skill."',
        "resumed": '$P "[[S:plain]] What does app.py do?"; '
        '$P resume --last "[[S:second]] And data.txt?"',
        "interrupted": 'timeout -s INT -k 8 5 $P "[[S:sleep2]] Run two commands."; '
        '$P resume --last "[[S:second]] And data.txt?"',
        "compacted": '$P "[[S:plain]] What does app.py do?"; '
        '$P -c model_auto_compact_token_limit=110 resume --last "[[S:third]] Go on."',
        "image": DOT_FILE + 'echo "[[S:plain]] What is this?" | $P -i dot.png -',
        "forked": '$P "[[S:plain]] What does app.py do?"; '
        'ID=$(ls $CODEX_HOME/sessions/*/*/*/*.jsonl | head -1 | grep -oE "[0-9a-f-]{36}.jsonl$"); '
        '$P fork "${ID%.jsonl}" "[[S:second]] And data.txt?"',
        "review": 'echo "y = 2" >> app.py; $P review --uncommitted',
        "cut-paced": 'timeout -s INT -k 8 12 $P "[[S:halfway]] Think long."; '
        '$P resume --last "[[S:second]] And data.txt?"',
        "cut": 'timeout -s INT -k 8 5 $P "[[S:slow]] Think long."; '
        '$P resume --last "[[S:second]] And data.txt?"',
        "killed": 'timeout -s KILL 12 $P "[[S:halfway]] Think long."; '
        '$P resume --last "[[S:second]] And data.txt?"',
        "killed-call": 'timeout -s KILL 12 $P "[[S:sleep2]] Run two commands."; '
        '$P resume --last "[[S:second]] And data.txt?"',
        "broken": '$P "[[S:broken]] What does app.py do?"',
        "broken-call": '$P "[[S:brokencall]] What does app.py do?"',
        "broken-later": '$P "[[S:brokenlater]] What do they do?"',
        "cutoff": '$P "[[S:cutoff]] What does app.py do?"',
        "served": 'S "turn:[[S:weather]] The weather in Bern?" "turn:[[S:second]] And data.txt?"',
        "served-steered": 'S "start:[[S:sleepshort]] Wait." wait:1 "steer:Be quick." end',
        "served-interrupted": 'S "start:[[S:sleep2]] Run two commands." wait:4 interrupt end '
        '"turn:[[S:second]] And data.txt?"',
        "served-reverted": 'S "turn:[[S:plain]] What does app.py do?" '
        '"turn:[[S:second]] And data.txt?" revert:1 "turn:[[S:third]] Go on."',
        "served-forked": 'S "turn:[[S:plain]] What does app.py do?" fork '
        '"turn:[[S:second]] And data.txt?"',
        "served-injected": 'S "turn:[[S:plain]] What does app.py do?" '
        f"'thread/inject_items:{_ITEMS}' "
        '"turn:[[S:second]] And data.txt?"',
        "served-shell": 'S "turn:[[S:plain]] What does app.py do?" '
        """'thread/shellCommand:{"command": "echo typed"}' end """
        '"turn:[[S:second]] And data.txt?"',
        "served-compacted": 'S "turn:[[S:plain]] What does app.py do?" '
        'thread/compact/start end "turn:[[S:second]] And data.txt?"',
        "served-reviewed": 'echo "y = 2" >> app.py; S "turn:[[S:plain]] What does app.py do?" '
        """'review/start:{"target": {"type": "uncommittedChanges"}}' end """
        '"turn:[[S:second]] And data.txt?"',
        "refused": 'P="${P%--dangerously*}"; $P -s read-only "[[S:denied]] Clean up.";'
        ' $P resume --last "[[S:second]] And data.txt?"',
    },
    logs=(".codex/sessions",),
    limits={},
)
