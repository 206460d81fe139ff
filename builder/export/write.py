"""Writes a variant of every proven sample whose rows give the proven text when loaded again."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from builder.conversation import Json
from builder.dataset.rows import CONVERSATION, DatasetRow
from builder.export.loading import ROUNDS, SplitRows, load, to_leave_out
from builder.export.preference import PreferencePair, PreferencePairs
from builder.export.row_writer import RowWriter
from builder.export.tokens import BorderFault
from builder.export.variant import ExportItem, Variant
from builder.export.variants import VARIANTS
from builder.jsonio import dumps, loads
from builder.output.aside import folder_aside, put_in_place
from builder.problem import UsageError
from builder.qwen3.parse import to_dialogue
from builder.qwen3.render import is_bare, is_following, render_sample
from builder.qwen3.style import Style, Thoughts
from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.trainers import DEFAULT_LENGTHS, configurations, data_file
from builder.trainers.record import Facts, Targets, Trainer, wider
from builder.verify.dataset import checked_rows
from builder.verify.verifier import Verdict, Verifier

LOADER = "loader"
"""Code of samples that are not given back as written."""

Written = dict[str, SplitRows]
"""The rows of an export by split."""


@dataclass(slots=True)
class Exported:
    """The outcome of an export.

    samples   rows of the dataset that were read
    written   samples that were exported
    rows      rows written for them
    equal     rows that gave the proven text when they were loaded again
    left_out  {code: samples not exported}
    changed   {number of a sample, from 0: what the loader changes}, which are left out
    problems  the reasons why nothing was put in place
    longest   tokens of the longest sample
    widest    as `builder.trainers.record.wider` counts them
    beyond    {trainer: samples longer than its default length}
    edges     {bare, following, thinking: samples} (`Facts`)
    context   samples with an assistant turn that is not a target
    not_last  samples whose targets are not just the last assistant turn
    policies  {option that made turns context only: samples}
    splits    the splits, in order of appearance
    pairs_left_out  {code: preference pairs not exported}
    silent    trainers without a configuration: they would train turns that are context only
    """

    samples: int = 0
    written: int = 0
    rows: int = 0
    equal: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    changed: Mapping[int, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    longest: int = 0
    widest: int = 0
    beyond: Counter[str] = field(default_factory=Counter)
    edges: Counter[str] = field(default_factory=Counter)
    context: int = 0
    not_last: int = 0
    policies: Counter[str] = field(default_factory=Counter)
    splits: list[str] = field(default_factory=list)
    pairs_left_out: Counter[str] = field(default_factory=Counter)
    silent: list[Trainer] = field(default_factory=list)

    @property
    def targets(self) -> Targets:
        """Returns which assistant turns of the samples are trained."""
        if not self.context:
            return "every"
        return "some" if self.not_last else "last"

    @property
    def untrained(self) -> str:
        """Describes the samples with context-only turns, and the options that caused them."""
        samples = "1 sample has" if self.context == 1 else f"{self.context} samples have"
        return (
            f"{samples} assistant turns that are context, not targets"
            f" ({', '.join(sorted(self.policies))})"
        )

    def count(self, item: ExportItem, verdict: Verdict, row: DatasetRow, style: Style) -> None:
        """Counts a sample that is exported."""
        tokens, sample = verdict.tokens, item.sample
        self.written += 1
        self.edges.update(
            bare=is_bare(sample),
            following=is_following(sample, style),
            thinking=any(turn.reasoning for turn in item.dialogue.turns),
        )
        self.longest = max(self.longest, tokens)
        self.widest = max(self.widest, wider(tokens, len(item.targets)))
        for name, limit in DEFAULT_LENGTHS.items():
            self.beyond[name] += tokens > limit
        if not all(item.targets):
            self.context += 1
            unit = row.unit != CONVERSATION
            self.policies["normalize.unit" if unit else "normalize.untrained_turns"] += 1
        self.not_last += any(item.targets[:-1]) or not item.targets[-1]

    def count_pairs(self, pairs: Sequence[PreferencePair]) -> None:
        """Counts exported preference pairs, by their longer sides."""
        for pair in pairs:
            self.written += 1
            self.longest = max(self.longest, pair.tokens)
            for name, limit in DEFAULT_LENGTHS.items():
                self.beyond[name] += pair.tokens > limit

    def facts(self, target: Target) -> Facts:
        """Returns the facts that the configurations depend on."""
        return Facts(
            self.written,
            self.longest,
            self.widest,
            dict(self.beyond),
            self.edges["bare"],
            self.edges["following"],
            self.edges["thinking"],
            self.targets,
            target.style.thoughts is Thoughts.hybrid,
            target.model,
            target.style.is_specified,
        )


def export(
    dataset: str, variant: Variant, out: Path, verifier: Verifier, *, fresh: bool = False
) -> Exported:
    """Writes the variant of every sample that is proven; `fresh` replaces an earlier export.

    A sample is left out if a row of it does not give the proven text when it is loaded again.
    Nothing is put in place if the loader fails with every sample. Raises UsageError if `dataset` or
    `out` cannot be used, or if no trainer of the variant can leave context-only turns untrained.
    """
    target = verifier.target
    with folder_aside(out, replaceable=lambda path: fresh and is_export(path)) as scratch:

        def write(root: Path, changed: Mapping[int, str]) -> tuple[Exported, Written]:
            """Writes an export without the samples that the loader changes."""
            shutil.rmtree(root, ignore_errors=True)
            (root / "data").mkdir(parents=True)
            exported = Exported(changed=changed)
            written = _write(dataset, variant, root, verifier, exported)
            if exported.rows:
                able = variant.able_trainers(exported.targets, target)
                exported.silent = [item for item in variant.trainers if item not in able]
                if not able:
                    raise UsageError(_refusal(variant, exported, target))
                _companions(variant, root, exported, target, able, out.resolve().name)
            return exported, written

        def loads_only(numbers: Sequence[int]) -> bool:
            others = dict.fromkeys(set(range(exported.samples)) - set(numbers), "")
            part = write(scratch / "part", others)[1]
            return not load(scratch / "part", part, variant, target).failure

        changed: dict[int, str] = {}
        for _ in range(ROUNDS):
            exported, written = write(scratch / "out", changed)
            if not exported.rows:
                break
            found = load(scratch / "out", written, variant, target)
            exported.equal = found.equal
            if not (found.failure or found.changed):
                put_in_place(scratch / "out", out)
                break
            changed |= (more := to_leave_out(found, written, loads_only))
            if not more:
                exported.problems.append(found.failure)
                break
        else:
            exported.problems += found.changed.values()
    return exported


def is_export(folder: Path) -> bool:
    """Returns whether `export` wrote the folder: its card or the names of its traces show it."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return "Written by `builder export --to " in " ".join(
            (folder / "README.md").read_text(encoding="utf-8").split()
        )
    return all(re.fullmatch(r"[0-9]{6}\.[a-z.]+", path.name) for path in folder.iterdir())


def _refusal(variant: Variant, exported: Exported, target: Target) -> str:
    others = [item for item in VARIANTS.values() if item.of_pairs is variant.of_pairs]
    able = [item.name for item in others if item.able_trainers(exported.targets, target)]
    reasons = [why for item in variant.trainers if (why := item.unfit(variant.name, target))]
    if len(reasons) == len(variant.trainers):
        use = f": use {' or '.join(able)}" if able else ""
        return f"export --to {variant.name}: {'; '.join(reasons)}{use}"
    titles = " and ".join(item.title for item in variant.trainers)
    return (
        f"export --to {variant.name}: {exported.untrained}; {titles} would train them: use"
        f" {' or '.join(able)}"
    )


def _write(
    dataset: str,
    variant: Variant,
    root: Path,
    verifier: Verifier,
    exported: Exported,
) -> Written:
    written: Written = {}
    writers: dict[str, RowWriter] = {}
    pairs = PreferencePairs(verifier, exported.pairs_left_out)
    for found, sample, verdict in proven_rows(dataset, verifier, exported):
        item = _item(sample, verdict, verifier)
        if variant.of_pairs:
            item = replace(item, pairs=tuple(pairs.proven(found, sample)))
            if not item.pairs:
                continue
        try:
            rows = list(variant.rows(item, verifier.target))
        except BorderFault:
            exported.left_out["span_border"] += 1
            continue
        split = found.split
        if split not in writers:
            writers[split] = RowWriter(
                root / data_file(split, variant.kind),
                variant,
                beside=verifier.target.style.beside,
            )
            written[split] = SplitRows()
            exported.splits.append(split)
        if variant.of_pairs:
            exported.count_pairs(item.pairs)
        else:
            exported.count(item, verdict, found, verifier.target.style)
        for row, text in rows:
            writers[split].write(row)
            written[split].add(text, exported.samples - 1)
            exported.rows += 1
    for writer in writers.values():
        writer.close()
    return written


def _item(sample: Sample, verdict: Verdict, verifier: Verifier) -> ExportItem:
    """Returns the item of a proven sample. Its targets are the turns that end where a span ends."""
    target = verifier.target
    ends = {end for _, end in verdict.spans}
    answers = render_sample(sample, target.style).answers
    return ExportItem(
        sample,
        to_dialogue(sample, target.style),
        verdict.text,
        verdict.spans,
        tuple(end in ends for _, end in answers),
        target.generation_prompts[verifier.options.mode],
    )


def proven_rows(
    dataset: str, verifier: Verifier, exported: Exported
) -> Iterator[tuple[DatasetRow, Sample, Verdict]]:
    """Yields each proven row, its sample and the verdict; counts the others as left out."""
    for row, sample, verdict in checked_rows(dataset, verifier):
        exported.samples += 1
        if exported.samples - 1 in exported.changed:
            exported.left_out[LOADER] += 1
        elif sample is None or verdict.findings:
            exported.left_out[verdict.findings[0].code] += 1
        else:
            yield row, sample, verdict


def _companions(
    variant: Variant,
    root: Path,
    exported: Exported,
    target: Target,
    trainers: Sequence[Trainer],
    folder: str,
) -> None:
    """Writes the card, which declares the features, and the trainers' configurations."""
    front: Json = {
        "configs": [
            {
                "config_name": "default",
                # the cache of `datasets` identifies a folder only by its name and its card
                "description": f"sha256 {_digest(root)}",
                "data_files": [
                    {"split": split, "path": f"data/{split}-*.{variant.kind}"}
                    for split in exported.splits
                ],
            }
        ],
        "dataset_info": {
            "features": variant.declared(weighted=exported.context > 0, beside=target.style.beside)
        },
    }
    # Copied through JSON, because YAML would write shared objects as references, which loaders do
    # not resolve.
    text = yaml.safe_dump(loads(dumps(front)), sort_keys=False, allow_unicode=True)
    facts = exported.facts(target)
    files = configurations(variant.name, variant.kind, trainers, facts, exported.splits, folder)
    listing = "\n".join(f"- `{Path('configs', name).as_posix()}`" for name in sorted(files))
    listing = listing.replace("configs/../", "")
    body = (
        f"---\n{text}---\n\n# {variant.name}\n\n{variant.summary}.\n\n"
        f"{_amount(variant, exported)}, the longest {exported.longest} tokens. Written by `builder"
        f" export --to {variant.name}`; every row was loaded again and gives the proven text.\n\n"
        f"Configurations (adapt the model, batch and learning rate):\n\n{listing}\n"
    )
    if exported.silent:
        names = ", ".join(item.title for item in exported.silent)
        body += f"\nNone for {names}: {exported.untrained}, which it would train.\n"
    (root / "README.md").write_text(body, encoding="utf-8")
    (root / "configs").mkdir()
    for name, content in files.items():
        path = (root / "configs" / name).resolve()
        path.write_text(content, encoding="utf-8")


def _amount(variant: Variant, exported: Exported) -> str:
    if variant.of_pairs:
        return f"{exported.rows} pairs of {exported.samples} samples"
    return f"{exported.rows} rows from {exported.written} samples"


def _digest(root: Path) -> str:
    """Returns the sha256 of the files in data/, in order."""
    whole = hashlib.sha256()
    for path in sorted((root / "data").iterdir()):
        with path.open("rb") as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()


def result(exported: Exported) -> dict[str, Json]:
    """Returns the result as `--json` prints it."""
    return {
        "samples": exported.samples,
        "rows": exported.rows,
        "equal": exported.equal,
        "left_out": dict(sorted(exported.left_out.items())),
        "pairs_left_out": dict(sorted(exported.pairs_left_out.items())),
        "changed_by_loader": list[Json](exported.changed.values())[:100],
        "problems": list(exported.problems[:100]),
        "longest": exported.longest,
    }
