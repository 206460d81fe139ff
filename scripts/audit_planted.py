"""Plants secrets and personal data in logs, and audits builds.

Prints how many of them the audits find and how many are left in the dataset.

    python scripts/audit_planted.py LOGS… [--seed N]

The logs are copied, and the texts inserted into existing ones (JSON and JSON Lines only). The same
logs are built with and without scrubbing, so that only what reaches a dataset counts.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import string
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from audit_recall import Maker, secrets

from builder import cli
from builder.audit.options import AuditOptions
from builder.audit.result import Audit
from builder.audit.run import audit
from builder.finding import GateAction
from builder.scrub.personal import is_card, is_iban

SECRETS, PERSONAL = 200, 100
WRITTEN = ("text", "content", "output", "value")
"""Keys under which a log stores text written by a person or a model."""


def personal(draw: random.Random) -> Iterator[tuple[str, str]]:
    """Yields (datum, text that contains it) without end."""
    letters = string.ascii_lowercase
    while True:
        name = "".join(draw.choices(letters, k=7))
        yield (mail := f"{name}@{name}-mail.org"), f"Contact: <{mail}>"
        yield (phone := f"+49 {draw.randint(151, 179)} {draw.randint(1000000, 9999999)}"), phone
        yield (ip := f"203.0.113.{draw.randint(1, 254)}"), f"connection from {ip} port 22"
        yield f"{name}q", f"cd /Users/{name}q/projects/app"
        yield f"{name}z", f"~/.claude/projects/-Users-{name}z-src-app"
        host = f"DESKTOP-{''.join(draw.choices(string.ascii_uppercase, k=7))}"
        yield host, f"C:\\> hostname\n{host}"
        body = "".join(draw.choices(string.digits, k=18))
        checks = (f"DE{check:02}{body}" for check in range(2, 99))
        yield (iban := next(text for text in checks if is_iban(text))), f"IBAN {iban}"
        stem = "4" + "".join(draw.choices(string.digits, k=14))
        yield (
            (card := next(f"{stem}{n}" for n in range(10) if is_card(f"{stem}{n}"))),
            f"card {card}",
        )


class Planting:
    """Inserts texts into copies of log files."""

    def __init__(self, folder: Path, built: Path, draw: random.Random) -> None:
        """Selects the files that samples were built from."""
        self.draw = draw
        lines = (built / "meta" / "train-00000-of-00001.jsonl").read_text().splitlines()
        names = sorted({json.loads(line)["source"] for line in lines})
        self.files = [
            folder / name
            for name in names
            if name.endswith((".json", ".jsonl")) and (folder / name).stat().st_size < 4 << 20
        ]

    def put(self, text: str) -> bool:
        """Appends the text to a text of a random file; returns False if the file has none."""
        path = self.draw.choice(self.files)
        lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines(keepends=True)
        whole = path.suffix == ".json"
        at = 0 if whole else self.draw.randrange(len(lines))
        try:
            value = json.loads("".join(lines) if whole else lines[at])
        except ValueError:
            return False
        places = list(_places(value))
        if not places:
            return False
        owner, key = self.draw.choice(places)
        owner[key] = f"{owner[key]}\n{text}\n"
        written = json.dumps(value, ensure_ascii=False) + "\n"
        lines = [written] if whole else [*lines[:at], written, *lines[at + 1 :]]
        path.write_text("".join(lines), encoding="utf-8", errors="surrogateescape")
        return True


def _places(value: Any) -> Iterator[tuple[dict[str, Any], str]]:
    if isinstance(value, list):
        for item in value:
            yield from _places(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if (
                isinstance(item, str)
                and key in WRITTEN
                and item.strip()
                and item.strip()[0] not in "{["
            ):
                yield value, key
            else:
                yield from _places(item)


def build(logs: Path, out: Path, settings: str) -> float:
    config = out.with_suffix(".yaml")
    config.write_text(f"audit: {settings}\n")
    started = time.perf_counter()
    code = cli.main(
        ["build", str(logs), "-c", str(config), "-o", str(out), "--workers", "1", "--quiet"]
    )
    assert code == 0, f"build ended with {code}"
    return time.perf_counter() - started


def data(out: Path) -> str:
    return "".join(
        path.read_text(encoding="utf-8")
        for part in ("data", "meta")
        for path in sorted((out / part).glob("*.jsonl"))
    )


def everything(out: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file())


def places(audited: Audit, name: str) -> int:
    return sum(
        item.count
        for item in audited.findings
        if item.audit == name and item.gate is GateAction.report
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)  # noqa: S311 - no real secrets
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        logs = work / "logs"
        for path in options.logs:
            shutil.copytree(path, logs / path.name, symlinks=False)
        build(logs, work / "clean", "{secrets: report}")
        planting = Planting(logs, work / "clean", draw)
        made = [(secret, text) for _, secret, text in secrets(Maker(options.seed))]
        draw.shuffle(made)
        planted = _plant(planting, made, SECRETS)
        named = _plant(planting, personal(draw), PERSONAL)
        build(logs, work / "kept", "{secrets: report}")
        seconds = build(
            logs,
            work / "scrubbed",
            "{secrets: redact, personal_data: pseudonymise}",
        )
        _print(work, planted, named, seconds)


def _plant(planting: Planting, items: Iterable[tuple[str, str]], count: int) -> list[str]:
    planted: list[str] = []
    for datum, text in items:
        if len(planted) == count:
            break
        if any(planting.put(text) for _ in range(50)):
            planted.append(datum)
    return planted


def _print(work: Path, planted: list[str], named: list[str], seconds: float) -> None:
    kept = data(work / "kept").encode()
    written = everything(work / "scrubbed")
    clean = audit(str(work / "clean"), AuditOptions())
    before = audit(str(work / "kept"), AuditOptions())
    started = time.perf_counter()
    after = audit(str(work / "scrubbed"), AuditOptions())
    audited = time.perf_counter() - started
    for name, items in (("secrets", planted), ("personal_data", named)):
        reached = [item for item in items if spelled(item, kept)]
        left = [item for item in reached if spelled(item, written)]
        recall = 1 - len(left) / len(reached)
        found = places(before, name) - places(clean, name)
        print(f"{name}: {len(items)} planted in logs, {len(reached)} of them reach the dataset")
        print(f"  recall {recall:.3f}: {len(left)} are left in any file of the scrubbed dataset")
        print(f"  {found} more places found than in the logs without them")
        print(f"  places that an audit of the scrubbed dataset finds: {places(after, name)}")
    print(f"build {seconds:.1f} s, audit {audited:.1f} s, {after.samples} samples")
    code = cli.main(["verify", str(work / "scrubbed"), "--quiet"])
    print(f"verify of the scrubbed dataset: {'all proven' if code == 0 else 'FAILED'}")
    sys.exit(code)


def spelled(item: str, written: bytes) -> bool:
    """Returns whether the text occurs in the file, verbatim or JSON-escaped once or twice."""
    once = json.dumps(item, ensure_ascii=False)[1:-1]
    twice = json.dumps(once, ensure_ascii=False)[1:-1]
    return any(spelling.encode() in written for spelling in {item, once, twice})


if __name__ == "__main__":
    main()
