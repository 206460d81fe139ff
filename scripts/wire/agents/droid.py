"""Factory's Droid: the native program, run by `droid exec` with a model of the user's own.

Without a login it does not continue a session.
"""

from __future__ import annotations

from wire.agents import Agent, common_scenarios

_SETUP = """
export FACTORY_API_KEY=fk-dummy FACTORY_DROID_AUTO_UPDATE_ENABLED=false
mkdir -p $HOME/.factory
cat > $HOME/.factory/config.json <<X
{"custom_models": [{"model_display_name": "Mock", "model": "mock-model", "api_key": "dummy",
  "base_url": "http://127.0.0.1:$PORT/v1", "provider": "generic-chat-completion-api",
  "max_tokens": 8000}]}
X
cat > $HOME/.factory/settings.json <<X
{"cloudSessionSync": false, "customModels": [{"model": "mock-model", "displayName": "Mock",
  "id": "custom:mock-model", "index": 0, "apiKey": "dummy", "noImageSupport": false,
  "baseUrl": "http://127.0.0.1:$PORT/v1", "provider": "generic-chat-completion-api",
  "maxOutputTokens": 8000}]}
X
D=$INSTALL/node_modules/@factory/cli-linux-x64/bin/droid
P="$D exec --skip-permissions-unsafe -m custom:mock-model"
"""

AGENT = Agent(
    name="droid",
    versions=("0.225.2",),
    packages=lambda version: (f"npm:@factory/cli-linux-x64@{version}",),
    setup=_SETUP,
    scenarios={
        **common_scenarios("$P"),
        "refused": '$D exec -m custom:mock-model "[[S:denied]] Clean up."',
        "subagent": '$P "[[S:agent]] Count the lines with a sub-agent."',
        "halves": '$P "[[S:halves]] Write a long answer."',
        "interrupted": 'timeout -s INT -k 8 15 $P "[[S:sleep2]] Run two commands."',
        "cut": 'timeout -s INT -k 8 15 $P "[[S:slow]] Think long."',
    },
    logs=(".factory/sessions",),
    limits={},
)
