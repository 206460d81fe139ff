"""Tokenizer folders: the embedded tokenizer with a different chat template."""

import json
from pathlib import Path

import builder.qwen3

ASSETS = Path(builder.qwen3.__file__).parent / "assets"
CONFIG = json.loads((ASSETS / "tokenizer_config.json").read_text(encoding="utf-8"))
TEMPLATE = CONFIG["chat_template"]

# The template without thoughts, as in the instruct-2507 models.
NO_THOUGHTS = (
    TEMPLATE.replace("'</think>' in message.content", "false")
    .replace("loop.index0 > ns.last_query_index", "false")
    .replace("enable_thinking is defined and enable_thinking is false", "false")
)


def tokenizer_folder(folder, template):
    """Writes a folder with the embedded tokenizer and this chat template, for `load`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").symlink_to(ASSETS / "tokenizer.json")
    config = {**CONFIG, "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)
