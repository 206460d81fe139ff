"""Builds with one worker in this process, and measures the CPU seconds of each stage.

stages.py LOGS OUT

Prints a JSON object: `bytes` of logs, `stages` with {name: {"cpu", "calls", "text"}}. A stage that
runs inside another counts once, as itself. `text` is what it was given or made, in code points;
null: it has no text. Stages are entered at functions of the program, which are wrapped here.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from builder.parallel.host import collect_seldom, own_process

REST = "imports and all else"


@dataclass(slots=True)
class Stage:
    """The CPU seconds, the calls and the code points of text of one stage."""

    cpu: float = 0.0
    calls: int = 0
    text: int | None = None


class Watch:
    """Adds the CPU time of this process to the stage that was entered last."""

    def __init__(self) -> None:
        self.stages: dict[str, Stage] = {}
        self._open = [REST]
        self._since = 0.0

    def count(self) -> None:
        """Adds the time since the last call."""
        now = time.process_time()
        self.stages.setdefault(self._open[-1], Stage()).cpu += now - self._since
        self._since = now

    def wrap(self, name: str, work: Callable[..., Any], texts: Texts) -> Callable[..., Any]:
        """Returns the function as a stage; what it yields is made in that stage, too."""

        @wraps(work)
        def measured(*args: Any, **options: Any) -> Any:
            made = self._inside(name, lambda: work(*args, **options))
            stage = self.stages[name]
            stage.calls += 1
            if texts is not None:
                stage.text = (stage.text or 0) + sum(map(len, texts(args, made)))
            return self._each(name, made) if isinstance(made, Iterator) else made

        return measured

    def _inside(self, name: str, work: Callable[[], Any]) -> Any:
        self.count()
        self._open.append(name)
        try:
            return work()
        finally:
            self.count()
            self._open.pop()

    def _each(self, name: str, items: Iterator[Any]) -> Iterator[Any]:
        end = object()
        while (item := self._inside(name, lambda: next(items, end))) is not end:
            yield item


Texts = Callable[[tuple[Any, ...], Any], Any] | None
"""Returns the texts of a call, given its arguments and its result."""


def first(args: tuple[Any, ...], _: Any) -> Any:
    """Returns the first argument: texts."""
    return args[0]


def second(args: tuple[Any, ...], _: Any) -> Any:
    """Returns the argument of a method: a text."""
    return args[1:2]


def one(_: tuple[Any, ...], made: Any) -> Any:
    """Returns the result: a text."""
    return [made]


STAGES: tuple[tuple[str, str, str, Texts], ...] = (
    ("open tokenizers", "builder.qwen3.tokenizer", "pretrained", None),
    ("open tokenizers", "builder.qwen3.tokenizer", "fast_from_file", None),
    ("open tokenizers", "builder.qwen3.tokenizer", "TokenTable.read", None),
    ("find inputs", "builder.build.build", "plan", None),
    ("read", "builder.build.convert", "read_events", None),
    ("spool", "builder.build.spool", "Spool.record", None),
    ("spool", "builder.build.spool", "Spool.replay", None),
    ("join sources", "builder.build.convert", "SeenAnswers.take", None),
    ("normalise", "builder.build.prove", "normalise", None),
    ("redact", "builder.scrub.redact", "Scrubber.dialogue", None),
    ("redact: search", "builder.scrub.redact", "secrets_in", first),
    ("redact: scanner", "builder.scrub.redact", "scanned_secrets", first),
    ("template", "builder.qwen3.tokenizer", "Target.render", one),
    ("template", "builder.qwen3.tokenizer", "Target.render_again", one),
    ("tokens", "builder.qwen3.tokenizer", "Target.encode", second),
    ("verify, the rest", "builder.build.convert", "prove", None),
    ("results", "builder.build.results", "ResultWriter.sample", None),
    ("select and write", "builder.build.publish", "finalize", None),
    ("audit", "builder.build.publish", "audit", None),
    ("load with datasets", "builder.build.publish", "_loaded", None),
    ("report and card", "builder.build.publish", "report_html", None),
    ("report and card", "builder.build.publish", "card", None),
)
"""(stage, module, function or method in it, its texts)."""


def main() -> None:
    watch = Watch()
    own_process()
    collect_seldom()
    for name, module, path, texts in STAGES:
        holder: Any = importlib.import_module(module)
        *classes, function = path.split(".")
        for item in classes:
            holder = getattr(holder, item)
        setattr(holder, function, watch.wrap(name, getattr(holder, function), texts))
    from builder.cli import main as run  # noqa: PLC0415 - after the functions are wrapped

    logs, out = sys.argv[1:]
    code = run(["build", logs, "-o", out, "--workers", "1", "--allow-eval", "-q", "--fresh"])
    watch.count()
    read = json.loads(Path(out, "manifest.json").read_bytes())["inputs"]
    size = sum(item["bytes"] for item in read)
    stages = {name: asdict(stage) for name, stage in watch.stages.items()}
    print(json.dumps({"bytes": size, "stages": stages}))
    sys.exit(code)


if __name__ == "__main__":
    main()
