"""What callers of the API write, for mypy: nothing here is run."""

from __future__ import annotations

from pathlib import Path

import builder
from builder import BuildResult, Config, Conversation, NormalizeOptions, Progress, PushOptions

ROWS: list[dict[str, object]] = [{"messages": [{"role": "user", "content": "Hi"}]}]


def show(progress: Progress) -> None:
    """Takes progress."""


def build(place: Path) -> BuildResult:
    """Builds from what may be passed."""
    prompt = {"role": "system", "content": "Be brief."}
    builder.build_dataset(ROWS, "out", config={"name": "x"}, tools=[{"name": "f"}], system=prompt)
    builder.build_dataset((row for row in ROWS), place, config=Config(name="x"), workers=None)
    builder.build_dataset([place, "logs"], "out", tools=["a.json", place], on_progress=show)
    sent = builder.capture_definitions(["claude", "-p", "hi"])
    options = NormalizeOptions(unit="turn")
    config = Config(normalize=options)
    return builder.build_dataset("logs", "out", config=config, tools=sent, system=sent)


def use(built: BuildResult, place: Path) -> int:
    """Passes a result where a dataset is expected."""
    merged = builder.merge_datasets([built, "other"], place)
    pushed = builder.push_dataset(merged, "you/name", options=PushOptions(dry_run=True))
    exported = builder.export_dataset(built, "trl", place, fresh=True)
    audited = builder.audit_dataset(built, options={"contamination": ["evaluation.jsonl"]})
    with builder.view_dataset(built) as view:
        assert view.url.isascii()
    changed = builder.diff_datasets(built, ROWS).changed
    assert builder.report_dataset(built).exists()
    assert pushed.gates["verify"] == "open"
    return builder.verify_dataset(built).proven + exported.rows + audited.samples + changed


def step_by_step(path: str | Path) -> int:
    """Goes from a log to a verified sample."""
    mapping = builder.suggest_mapping(ROWS)
    assert builder.inspect_log(path, mapping=mapping).conversations
    tokens = 0
    for event in builder.read(path):
        if isinstance(event, Conversation):
            normalised = builder.normalise(event, {"reasoning": "keep"})
            tokens += builder.verify_sample(builder.flatten(normalised), normalised).tokens
    return tokens
