"""Runs a push from the gates to the read-back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from builder.audit.notes import EVALUATION_RUN
from builder.brief import brief
from builder.options import options
from builder.output.manifest import MANIFEST, Manifest
from builder.parallel.host import quiet_logger
from builder.paths import expand_home
from builder.problem import OptionError, UsageError, nearest
from builder.push import hub
from builder.push.gates import (
    BLOCKING,
    NOT_AUDITED,
    UNKNOWN_LICENSE,
    GateRefusal,
    PushFile,
    as_published,
    listed_files,
    overrule,
    refusals,
)
from builder.push.hub import MAIN, HubRepository, Place, PushFault, Retries, with_retries
from builder.push.upload import KEPT, Arrival, Changes, Uploaded, compare, read_back, upload
from builder.qwen3.reference import EMBEDDED
from builder.verify.verifier import verifier_for

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_OTHER_CONTENT = "other-content"
_STALE = "stale"
NO_LOGIN = "no token for the Hub"
_GATES = (NOT_AUDITED, *BLOCKING, EVALUATION_RUN, UNKNOWN_LICENSE, _OTHER_CONTENT)
"""The gates that `--allow` may overrule."""


@options
@dataclass(frozen=True, slots=True)
class PushOptions:
    """Options of a push. `allow`: codes of gates to overrule; `tokenizer` None: as for `verify`."""

    public: bool = False
    revision: str = MAIN
    create_pr: bool = False
    tag: str | None = None
    prune: bool = False
    allow: tuple[str, ...] = ()
    tokenizer: str | None = None
    dry_run: bool = False


@dataclass(slots=True)
class PushReport:
    """The results of a push; those of phases that it did not reach are None or empty.

    files    those to push
    survey   the repository before the push; None if it was not looked at
    removed  files that are only on the Hub and are removed there (`prune`)
    error    why it ended early
    """

    repo: str
    refused: list[GateRefusal] = field(default_factory=list)
    overruled: dict[str, str] = field(default_factory=dict)
    files: list[PushFile] = field(default_factory=list)
    survey: HubRepository | None = None
    changes: Changes | None = None
    removed: list[str] = field(default_factory=list)
    uploaded: Uploaded | None = None
    arrival: Arrival | None = None
    error: str | None = None

    def __repr__(self) -> str:
        """Returns the repository, the files and what became of them in one line."""
        closed = [item.code for item in self.refused]
        files = f"{len(self.files)} files"
        return brief(
            self, files, repo=self.repo, is_done=self.is_done, closed=closed, error=self.error
        )

    @property
    def gates(self) -> dict[str, str]:
        """Returns {gate: open, closed, overruled or not checked}; those of the Hub come last."""
        states = dict.fromkeys(("manifest", "verify", *_GATES), "open")
        states |= dict.fromkeys((_STALE, _OTHER_CONTENT), "open" if self.survey else "not checked")
        if any(item.code == "manifest" for item in self.refused):
            states = dict.fromkeys(states, "not checked")
        states |= dict.fromkeys(self.overruled, "overruled")
        return states | {item.code: "closed" for item in self.refused}

    @property
    def is_done(self) -> bool:
        """Whether nothing stopped it and the read-back found no difference."""
        return not (self.refused or self.error or (self.arrival and self.arrival.problems))


def push(
    dataset: str,
    report: PushReport,
    options: PushOptions,
    retries: Retries,
    show: Callable[[PushReport], None],
) -> None:
    """Pushes a built folder and fills in the report. Raises UsageError.

    Calls `show` with the planned changes in the report, before anything is changed. A dry run whose
    gates are closed, or without a token, does not look at the Hub and only lists the files.
    """
    try:
        with quiet_logger("huggingface_hub"):  # its log has signed URLs
            _push(expand_home(dataset), report, options, retries, show)
    except PushFault as fault:
        report.error = str(fault)


def _push(
    folder: Path,
    report: PushReport,
    options: PushOptions,
    retries: Retries,
    show: Callable[[PushReport], None],
) -> None:
    for code in options.allow:
        if code not in _GATES:
            raise OptionError("allow", f" {code!r}: no such gate{nearest(code, _GATES)}")
    place = _place(report.repo, options)
    manifest = Manifest.load(folder, str(folder))
    target = verifier_for(options.tokenizer or EMBEDDED).target
    files, changed = listed_files(folder, manifest)
    closed = list(refusals(folder, manifest, changed, target, public=options.public))
    report.refused, report.overruled = overrule(closed, options.allow)
    if report.refused and not options.dry_run:
        return
    published = report.files = as_published(files, manifest, report.overruled, report.repo)
    if options.dry_run and (report.refused or not _has_token()):
        show(report)
        return
    api = _api()
    looking = f"look at {place.repo}"
    survey = with_retries(lambda: _survey(api, place, options), retries, what=looking)
    report.survey = survey
    report.changes = compare(published, survey.files)
    if options.prune:
        report.removed = [file.path for file in report.changes.extra if file.path != KEPT]
    if options.tag and survey.head is not None:
        tag, is_same = options.tag, not (report.changes.send or report.removed)
        tagged = with_retries(lambda: hub.tagged(api, place.repo, tag), retries, what=looking)
        if tagged is not None and not (is_same and tagged == survey.head):
            raise OptionError(
                "tag", f" {tag!r}: exists, at {tagged[:12]}; a push does not move tags"
            )
    closed = list(_hub_gates(report.changes, survey, options))
    report.refused, overruled = overrule(closed, options.allow)
    report.overruled |= overruled
    show(report)
    if report.refused or options.dry_run:
        return
    report.uploaded = upload(
        api,
        place,
        published,
        survey=survey,
        removed=report.removed,
        title=f"Push {len(published)} files (manifest {published[-1].sha256[:12]})",
        as_pull_request=options.create_pr,
        retries=retries,
    )
    arrived = Place(place.repo, report.uploaded.commit)
    if options.tag:
        tag = options.tag
        with_retries(lambda: _tag(api, arrived, tag), retries, what=f"tag {place.repo}")
    report.arrival = with_retries(
        lambda: read_back(api, arrived, folder, published, target),
        retries,
        what=f"read {place.repo} back",
    )


def _place(repo: str, options: PushOptions) -> Place:
    if repo.count("/") != 1:
        raise UsageError(f"repository {repo!r}: must be OWNER/NAME")
    if options.create_pr and options.revision != MAIN:
        raise OptionError("create_pr", ": pull requests are against main; leave out the revision")
    if options.create_pr and options.tag:
        raise OptionError("tag", ": a pull request can only be tagged after it is merged")
    if len(options.revision) == 40 and all(char in "0123456789abcdef" for char in options.revision):
        raise OptionError(
            "revision", ": is a commit; name the branch to which the push adds a commit"
        )
    return Place(repo, options.revision, private=not options.public)


def _api() -> HfApi:
    """Returns the client with the user's token."""
    from huggingface_hub import HfApi  # noqa: PLC0415 - the client is heavy

    if not _has_token():  # a private repository would seem not to exist
        raise UsageError(f"{NO_LOGIN}: `hf auth login`, or HF_TOKEN")
    return HfApi()


def _has_token() -> bool:
    from huggingface_hub import get_token  # noqa: PLC0415 - the client is heavy

    return bool(get_token())


def _survey(api: HfApi, place: Place, options: PushOptions) -> HubRepository:
    """Returns the repository before the push. Raises UsageError if it contradicts the options."""
    survey = hub.repository_at(api, place)
    if survey.private is not None and survey.private == options.public:
        now = "private" if survey.private else "public"
        raise UsageError(
            f"{place.repo}: is {now} on the Hub, and a push does not change that: use {{public}}",
            public=not survey.private,
        )
    return survey


def _hub_gates(
    changes: Changes, survey: HubRepository, options: PushOptions
) -> Iterator[GateRefusal]:
    """Yields the gates that are closed because of files on the Hub."""
    if changes.stale and not options.prune:
        names = ", ".join(changes.stale[:5])
        yield GateRefusal(
            _STALE,
            f"{len(changes.stale)} files on the Hub would be loaded together with these: {names};"
            " `prune` removes files that are only on the Hub",
            by_name=False,
        )
    if changes.update and MANIFEST not in survey.files:
        names = ", ".join(file.path for file in changes.update[:5])
        yield GateRefusal(
            _OTHER_CONTENT, f"files that are not of a build would be replaced: {names}"
        )


def _tag(api: HfApi, arrived: Place, tag: str) -> None:
    tagged = hub.tagged(api, arrived.repo, tag)
    if tagged is None:
        api.create_tag(arrived.repo, tag=tag, revision=arrived.revision, repo_type=hub.DATASET)
    elif tagged != arrived.revision:
        raise PushFault(f"tag {tag!r}: was set to {tagged[:12]} meanwhile; it is not moved")
