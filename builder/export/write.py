"""Writes a variant of every proven sample whose rows give the proven text when loaded again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from builder.codes import DUPLICATE
from builder.conversation import Json
from builder.credentials import reason
from builder.dataset.rows import DatasetRow
from builder.export.outcome import (
    LOADER,
    LONGER,
    TARGETS,
    UNIFORM,
    Exported,
    TrainerRun,
    fits,
    left_out_line,
)
from builder.export.variants import (
    VARIANTS,
    BorderFault,
    ExportItem,
    PreferencePairs,
    Variant,
    reference_answer,
    reward_of,
)
from builder.jsonio import dumps
from builder.keys import write_keys
from builder.normalize.units import example, plan_windows, turn_sizes
from builder.output.folder import folder_aside, put_in_place
from builder.output.manifest import VERIFIED, Manifest, TokenizerEntry
from builder.output.rows import TOOLS, ParquetFile, declarations, row_file
from builder.parallel.host import quiet_datasets
from builder.paths import expand_home
from builder.problem import UsageError
from builder.qwen3.flat import flatten, to_dialogue
from builder.qwen3.reference import reference
from builder.qwen3.render import render_sample
from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.trainers.table import (
    TRAINERS,
    Targets,
    Trainer,
    configurations,
    data_file,
    difference_of,
    exact_variant,
)
from builder.verify.as_loaded import loader_fault
from builder.verify.dataset import checked_rows
from builder.verify.verifier import Verdict, Verifier

# -- loads a written export as trainers do, and names the samples that it does not give back -------

_ROUNDS = 10
"""Maximum number of times that an export is written, without the samples found so far."""


@dataclass(slots=True)
class SplitRows:
    """What is known of the rows of a split in the order of its file.

    digests  the sha256 of the text that each row must give
    samples  the number of each row's sample
    """

    digests: list[bytes] = field(default_factory=list)
    samples: array[int] = field(default_factory=lambda: array("Q"))

    def add(self, text: str, sample: int) -> None:
        """Adds a row."""
        self.digests.append(hashlib.sha256(text.encode("utf-8")).digest())
        self.samples.append(sample)


@dataclass(slots=True)
class Loaded:
    """The outcome of loading an export.

    equal    rows that give the text which was proven
    changed  {number of a sample: how a row of it differs}
    failure  why the rows could not be compared, or ""
    """

    equal: int = 0
    changed: dict[int, str] = field(default_factory=dict)
    failure: str = ""


def load(root: Path, written: dict[str, SplitRows], variant: Variant, target: Target) -> Loaded:
    """Loads the folder as trainers do, and compares the text of each row with the proven one."""
    import datasets  # noqa: PLC0415 - two seconds of import

    loaded_rows = Loaded()
    with quiet_datasets(), tempfile.TemporaryDirectory(dir=root.parent) as cache:
        try:
            splits = datasets.load_dataset(str(root), cache_dir=cache)
            for split, rows in written.items():
                _compare(split, rows, splits[split], variant, target, loaded_rows)
        except Exception as error:  # any exception of the loader means that the files are at fault
            loaded_rows.failure = f"it cannot be loaded: {reason(error)}"
    return loaded_rows


def _compare(
    split: str, rows: SplitRows, loaded: Any, variant: Variant, target: Target, result: Loaded
) -> None:
    if len(loaded) != len(rows.digests):
        result.failure = f"{split}: {len(loaded)} of {len(rows.digests)} rows are loaded"
        return
    target.open()  # if it cannot be loaded, that is no fault of a row
    for number, row in enumerate(loaded):
        try:
            text = variant.text(row, target)
            is_equal = hashlib.sha256(text.encode("utf-8")).digest() == rows.digests[number]
            fault = "" if is_equal else "the loaded row gives different text"
        except Exception as error:  # any exception of a template is a fault of the row
            fault = f"the loaded row does not render: {reason(error)}"
        if fault:
            result.changed.setdefault(rows.samples[number], f"{split} row {number + 1}: {fault}")
        else:
            result.equal += 1


Written = dict[str, SplitRows]
"""The rows of an export by split."""


def export(
    dataset: str,
    variant: Variant,
    out: Path,
    verifier: Verifier,
    trainer: Trainer | None = None,
    *,
    fresh: bool = False,
    max_tokens: int | None = None,
) -> Exported:
    """Writes the variant of every sample that is proven; `fresh` replaces an earlier export.

    Of a sample with more than `max_tokens`, windows are written.

    A sample is left out if a row of it does not give the proven text when it is loaded again.
    If the trainer (None: every trainer of the variant) cannot train just the targets of all
    samples, those that keep it from that end before their first turn of context, or are left out.
    Nothing is put in place if the loader fails with every sample. Raises UsageError if `dataset` or
    `out` cannot be used, or if the variant fits less than half of them.
    """
    asked = [trainer] if trainer is not None else variant.trainers
    job = _Export(dataset, variant, verifier, asked, max_tokens)
    exported = job.exported
    with folder_aside(
        out, replaceable=lambda path: fresh and is_export(path), hint=earlier_export
    ) as scratch:
        root = scratch / "out"
        for _ in range(_ROUNDS):
            shutil.rmtree(root, ignore_errors=True)
            (root / "data").mkdir(parents=True)
            exported = job.begun()
            written = job.write(root)
            if not exported.rows:
                break
            able = variant.able_trainers(exported.targets, verifier.target)
            if job.only is None and job.restricts(able):
                continue
            job.write_companions(root, able, out.resolve().name)
            (root / VERIFIED).write_bytes(_verified(Manifest.of(expand_home(dataset)), verifier))
            found = load(root, written, variant, verifier.target)
            exported.equal = found.equal
            if found.failure:
                exported.problems.append(found.failure)
                break
            if not found.changed:
                put_in_place(root, out)
                break
            job.changed |= found.changed
        else:
            exported.problems += found.changed.values()
    return exported


def earlier_export(folder: Path) -> str:
    """Returns what to do about an output that is an earlier export, or ""."""
    return "; {fresh} replaces this export" if folder.is_dir() and is_export(folder) else ""


def is_export(folder: Path) -> bool:
    """Returns whether `export` wrote the folder: its card or the names of its traces show it."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return "Written by `builder export --to " in " ".join(
            (folder / "README.md").read_text(encoding="utf-8").split()
        )
    return all(re.fullmatch(r"[0-9]{6}\.[a-z.]+", path.name) for path in folder.iterdir())


@dataclass(slots=True)
class _Export:
    """An export in rounds: what is asked for, and what earlier rounds showed.

    only     targets that all samples must have or be given, since no trainer can train others
    unfit    why samples are left out for that, and what exports them
    changed  {number of a sample: what the loader changes}
    """

    dataset: str
    variant: Variant
    verifier: Verifier
    asked: Sequence[Trainer]
    max_tokens: int | None
    only: Targets | None = None
    unfit: str = ""
    changed: dict[int, str] = field(default_factory=dict)
    exported: Exported = field(default_factory=Exported)

    @property
    def target(self) -> Target:
        return self.verifier.target

    def begun(self) -> Exported:
        """Begins a round."""
        self.exported = Exported(
            self.variant.name,
            changed=self.changed,
            targets_advice=self.unfit,
            max_tokens=self.max_tokens,
        )
        return self.exported

    # -- targets that the trainers cannot train ----------------------------------------------------

    def restricts(self, able: Sequence[Trainer]) -> bool:
        """Returns whether only samples with the targets of most are to be written instead.

        `able` can train the targets as they are. Raises UsageError if no trainer can train any.
        """
        if any(item in able for item in self.asked):
            return False
        counts = self.exported.by_targets
        kinds = (
            kind
            for kind in UNIFORM
            if any(item in self.asked for item in self.variant.able_trainers(kind, self.target))
        )
        most = max(kinds, key=lambda kind: counts[kind], default=None)
        if most is not None and 2 * counts[most] >= self.exported.written:
            titles = " and ".join(item.title for item in self.asked)
            which = " and ".join(sorted(self.exported.policies))
            self.only = most
            targets, target = self.exported.targets, self.target
            fit = [item for item in TRAINERS.values() if item.variant_for(targets, target)]
            names = " or ".join(item.name for item in fit)
            others = f"--to {names}" if fit else self._other_variants()
            self.unfit = f"{titles} cannot train only the right turns ({which}); {others} can"
        elif not able:
            raise UsageError(f"export --to {self.variant.name}: {self._refusal()}")
        return self.only is not None

    def _other_variants(self) -> str:
        kinds = (self.variant.of_pairs, self.variant.distinct)
        others = [item for item in VARIANTS.values() if (item.of_pairs, item.distinct) == kinds]
        targets = self.exported.targets
        return " or ".join(one.name for one in others if one.able_trainers(targets, self.target))

    def _refusal(self) -> str:
        trainers, instead = self.variant.trainers, self._other_variants()
        reasons = [why for one in trainers if (why := one.unfit(self.variant.name, self.target))]
        if len(reasons) == len(trainers):
            return "; ".join(reasons) + (f": use {instead}" if instead else "")
        titles = " and ".join(item.title for item in trainers)
        return f"{self.exported.untrained}; {titles} would train them: use {instead}"

    # -- rows --------------------------------------------------------------------------------------

    def write(self, root: Path) -> Written:
        """Writes the rows, each once that its sample is counted."""
        exported, variant = self.exported, self.variant
        written: Written = {}
        writers: dict[str, BinaryIO | ParquetFile] = {}
        features = variant.declared(weighted=False, beside=self.target.style.beside)
        pairs = PreferencePairs(self.verifier, exported.pairs_left_out)
        known: set[bytes] = set()
        for found, item in self._items():
            if variant.of_pairs:
                proven = list(pairs.proven(found, item.sample))
                fitting = [pair for pair in proven if not self._is_longer(pair.tokens)]
                if len(fitting) < len(proven):
                    exported.pairs_left_out[LONGER] += len(proven) - len(fitting)
                if not fitting:
                    continue
                item = replace(item, pairs=tuple(fitting))  # noqa: PLW2901 - completed
            try:
                rows = [
                    (dumps(row).encode("utf-8") + b"\n", text, reference_answer(row))
                    for row, text in variant.rows(item, self.target)
                ]
            except BorderFault:
                exported.left_out["span_border"] += 1
                continue
            if variant.distinct:
                rows = [row for row in rows if row[0] not in known]
                known.update(row for row, _, _ in rows)
                if not rows:
                    exported.left_out[DUPLICATE] += 1
                    continue
                encode = self.target.encode
                exported.sizes += (
                    (
                        len(encode(prompt + item.prompt).ids),
                        len(encode(answer + "<|im_end|>").ids) if answer else 0,
                    )
                    for _, prompt, answer in rows
                )
            split = found.split
            if split not in writers:
                writers[split] = row_file(root / data_file(split, variant.kind), features)
                written[split] = SplitRows()
            exported.splits[split] += 1
            if variant.of_pairs:
                exported.count_pairs(item.pairs)
            else:
                exported.count(item, found, self.target.style)
            for line, text, _ in rows:
                writers[split].write(line)
                written[split].add(text, exported.samples - 1)
                exported.rows += 1
        for writer in writers.values():
            writer.close()
        return written

    def _is_longer(self, tokens: int) -> bool:
        return self.max_tokens is not None and tokens > self.max_tokens

    def _items(self) -> Iterator[tuple[DatasetRow, ExportItem]]:
        """Yields what is exported of each row; counts the rest."""
        exported, variant, only = self.exported, self.variant, self.only
        for row, sample, verdict in proven_rows(self.dataset, self.verifier, exported):
            loaded = sample if TOOLS in variant.features else Sample(sample.messages)
            if variant.kind == "jsonl" and (fault := loader_fault(loaded)) is not None:
                exported.leave_out(LOADER, row, fault)
                continue
            whole = self._item(sample, verdict, row)
            items: Iterable[ExportItem] = [whole]
            if self._is_longer(verdict.tokens) and not variant.of_pairs:
                items = self._windows(whole, row)
            for item in items:
                if not only or fits(item, only):
                    yield row, item
                elif only == "every" and (short := self._without_context(item, row)) is not None:
                    exported.shortened += 1
                    exported.turns_left_out += sum(item.targets) - len(short.targets)
                    yield row, short
                else:
                    exported.left_out[TARGETS] += 1

    def _windows(self, item: ExportItem, row: DatasetRow) -> Iterator[ExportItem]:
        """Yields windows of at most `max_tokens`, as a build makes them (`limits.too_long: split`).

        For trainers that would train what later windows repeat, only the longest beginning.
        """
        assert self.max_tokens is not None, "the sample is longer"
        exported, turns = self.exported, item.dialogue.turns
        answers = [at for at, turn in enumerate(turns) if turn.role == "assistant"]
        wanted = [at for at, trained in zip(answers, item.targets, strict=True) if trained]
        sizes = turn_sizes(item.sample, len(turns), self.target)
        weighs = any(one.can_train(self.variant.name, "some") for one in self.asked)
        windows, no_room = plan_windows(
            turns, wanted, sizes, self.max_tokens, only_first=not weighs
        )
        exported.windowed += bool(windows)
        exported.turns_too_long += len(no_room)
        if not windows:
            exported.leave_out(LONGER, row, f"no trained turn fits into {self.max_tokens:,} tokens")
        for window in windows:
            places, targets = window.places, window.targets
            made = example(item.dialogue, places, targets, self.target.style, weighted=True)
            sample = flatten(made.dialogue, self.target.style)
            verdict = self.verifier.check(
                sample, made.dialogue, made.targets, late_system=row.late_system
            )
            if verdict.findings:
                exported.leave_out(verdict.findings[0].code, row, verdict.findings[0].message)
            else:
                yield self._item(sample, verdict, row)

    def _without_context(self, item: ExportItem, row: DatasetRow) -> ExportItem | None:
        """Returns a sample up to the answer before the first that is not trained, if there is one.

        None also if that is no proven sample.
        """
        sample, trained = item.sample, item.targets.index(False)
        if not trained:
            return None
        answers = [at for at, (role, _) in enumerate(sample.messages) if role == "assistant"]
        end = answers[trained - 1] + 1
        sample = Sample(sample.messages[:end], sample.tools, (), sample.thoughts[:end])
        verdict = self.verifier.check(sample, late_system=row.late_system)
        return None if verdict.findings else self._item(sample, verdict, row)

    def _item(self, sample: Sample, verdict: Verdict, row: DatasetRow) -> ExportItem:
        """Returns the item of a proven sample: its targets are the turns that end with a span."""
        ends = {end for _, end in verdict.spans}
        answers = render_sample(sample, self.target.style).answers
        return ExportItem(
            sample,
            to_dialogue(sample, self.target.style),
            verdict.text,
            verdict.tokens,
            verdict.spans,
            tuple(end in ends for _, end in answers),
            self.target.generation_prompts[self.verifier.options.mode],
            reward_of(row.meta.outcome),
        )

    # -- the files beside the rows -----------------------------------------------------------------

    def write_companions(self, root: Path, trainers: Sequence[Trainer], folder: str) -> None:
        """Writes the card, which declares the features, and the trainers' configurations."""
        exported, variant, target = self.exported, self.variant, self.target
        for item in variant.trainers:
            if item not in trainers:
                better = item.variant_for(exported.targets, target)
                instead = f" (not with --to {better})" if better else ""
                exported.without_configuration[item.title] = (
                    item.unfit(variant.name, target)
                    or f"{exported.untrained}, which it would train{instead}"
                )
        features = variant.declared(
            weighted=exported.with_context_turns > 0, beside=target.style.beside
        )
        front = declarations(exported.splits, variant.kind, _digest(root), features)
        text = yaml.safe_dump(front, sort_keys=False, allow_unicode=True)
        facts = exported.facts(target)
        exported.beyond_model = facts.beyond_model
        exported.runs = [
            TrainerRun(
                item.title,
                item.run(variant.name)[0],
                difference_of(item, variant.name, facts),
                None if variant.distinct else exact_variant(item, facts),
                item.drops(facts),
            )
            for item in trainers
        ]
        files = configurations(
            variant.name, variant.kind, trainers, facts, list(exported.splits), folder
        )
        listing = "\n".join(f"- `{Path('configs', name).as_posix()}`" for name in sorted(files))
        listing = listing.replace("configs/../", "")
        windows = " and windows of samples" if exported.windowed else ""
        amount = f"{exported.rows} rows from {exported.written} samples{windows}"
        if variant.of_pairs:
            amount = f"{exported.rows} pairs of {exported.samples} samples"
        notes = [f"{run.title} drops {run.drops}." for run in exported.runs if run.drops]
        lacking = exported.without_configuration.items()
        notes += [f"None for {title}: {why}." for title, why in lacking]
        if exported.targets_advice:
            notes.append(f"{left_out_line(exported, TARGETS)}.")
        body = (
            f"---\n{text}---\n\n# {variant.name}\n\n{variant.summary}.\n\n"
            f"{amount}, the longest {exported.longest} tokens. Written by `builder export"
            f" --to {variant.name}`; every row was loaded again and gives the verified text.\n\n"
            f"Configurations (adapt the model, batch and learning rate):\n\n{listing}\n"
        ) + "".join(f"\n{note}\n" for note in notes)
        (root / "README.md").write_text(body, encoding="utf-8")
        (root / "configs").mkdir()
        for name, content in files.items():
            (root / "configs" / name).resolve().write_text(content, encoding="utf-8")


def proven_rows(
    dataset: str, verifier: Verifier, exported: Exported
) -> Iterator[tuple[DatasetRow, Sample, Verdict]]:
    """Yields each proven row, its sample and the verdict; counts the others as left out."""
    for row, sample, verdict in checked_rows(dataset, verifier):
        exported.samples += 1
        if exported.samples - 1 in exported.changed:
            exported.left_out[LOADER] += 1
        elif sample is None or verdict.findings:
            exported.leave_out(verdict.findings[0].code, row, verdict.findings[0].message)
        else:
            yield row, sample, verdict


def _verified(manifest: Manifest, verifier: Verifier) -> bytes:
    """Returns what the rows were verified against, as a built folder's manifest names it."""
    target, entry = verifier.target, manifest.tokenizer
    template = manifest.chat_template
    if (entry.template_sha256, entry.files) != (target.template_sha256, target.files):
        named = reference(target.reference)
        template = named.chat_template
        entry = TokenizerEntry(
            name=named.tokenizer,
            model=named.model,
            files=dict(target.files),
            template_sha256=target.template_sha256,
            template_name=target.template_name,
            template_options=dict(target.options),
            missing=target.missing,
        )
    verify: Json = {"chat_template": template, "mode": verifier.options.mode}
    facts = {"tokenizer": write_keys(entry), "config": {"verify": verify}}
    return f"{json.dumps(facts, ensure_ascii=False, indent=1)}\n".encode()


def _digest(root: Path) -> str:
    """Returns the sha256 of the files in data/, in order."""
    whole = hashlib.sha256()
    for path in sorted((root / "data").iterdir()):
        with path.open("rb") as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()
