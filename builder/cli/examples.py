"""Examples of each command, which its help and docs/cli.md show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_MODEL = "Qwen3-4B-Instruct-2507"

EXAMPLES: Mapping[str, Sequence[tuple[str, str]]] = {
    "": (
        ("builder build", "lists the logs on this machine"),
        ("builder build --all -o out/mine", "builds them into one dataset"),
        ("builder view out/mine", "shows it in the browser"),
    ),
    "build": (
        (
            f"builder build --all --for {_MODEL} -o out/mine",
            "The logs of every agent on this machine, for the model you train.",
        ),
        (
            "builder build ~/.claude/projects --plan",
            "Compares settings on some of the sessions, and writes nothing.",
        ),
        (
            "builder build logs -o out/turns --preset sft --set normalize.unit=turn",
            "A preset, with one of its options changed.",
        ),
    ),
    "verify": (
        ("builder verify out/mine", "A folder made by build."),
        (
            f"builder verify hf://OWNER/NAME --for {_MODEL}",
            "Any dataset, here one on the Hub, for the model you train.",
        ),
        ("builder verify mine.jsonl --masks all", "What each trainer would train of it."),
    ),
    "inspect": (
        ("builder inspect logs", "What is in a folder of logs, and one conversation."),
        ("builder inspect logs --index 1 --full", "Another conversation, with all its text."),
        (
            "builder inspect own.jsonl --suggest-mapping",
            "The draft of a mapping for logs of your own.",
        ),
    ),
    "export": (
        ("builder export out/mine --to trl -o out/mine-trl", "Rows and a configuration for TRL."),
        ("builder export mine.jsonl --to openai -o out/openai", "Structured tool calls."),
    ),
    "push": (
        ("builder push out/mine you/mine --dry-run", "Lists gates and files, without a login."),
        ("builder push out/mine you/mine --tag v1", "Uploads it, for you alone, with a tag."),
    ),
    "report": (
        ("builder report out/mine", "Writes report.html."),
        ("builder report mine.jsonl -o mine.html", "The page of any dataset."),
    ),
    "view": (
        ("builder view out/mine", "Opens it in the browser, to accept and reject samples."),
        ("builder view out/mine --logs logs", "The same, next to the raw records."),
    ),
    "audit": (
        ("builder audit out/mine", "What is in a dataset, and what is wrong with it."),
        (
            "builder audit mine.jsonl --fail-on secrets,exact_duplicate",
            "A gate for CI: exit code 1 if there is a secret or a duplicate.",
        ),
        ("builder audit mine.jsonl --contamination eval.jsonl", "What of eval.jsonl is in it."),
    ),
    "formats": (
        ("builder formats", "All formats."),
        ("builder formats --explain logs", "Which readers claim a file, and why."),
    ),
    "collect": (
        ("builder collect -o ~/agent-logs", "The logs of all agents; for cron."),
        (
            "builder collect ~/.claude/projects -o ~/agent-logs --dry-run",
            "What would be copied of one folder.",
        ),
    ),
    "capture": (
        ('builder capture -o captures -- gemini -p "Fix the failing test"', "Keeps one session."),
        (
            "builder capture --definitions -o claude-code.json -- claude -p hi",
            "Keeps the prompt and the tools of an agent, for `build --tools` and `--system`.",
        ),
    ),
    "merge": (
        ("builder merge out/mine out/theirs -o out/both", "One dataset of two."),
        (
            "builder merge out/mine out/theirs -o out/split --set split.validation=0.1",
            "The same, with a tenth kept for validation.",
        ),
    ),
    "diff": (("builder diff out/mine out/theirs", "Exit code 1 if they differ."),),
}
"""{command: examples}, each a line and its purpose; "": those of the program."""
