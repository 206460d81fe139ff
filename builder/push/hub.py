"""Accesses a dataset repository on the Hub through `huggingface_hub`; retries after its faults.

Every commit names its parent, so no commit is made twice and none reverts a concurrent change, as
the client's own folder upload may.
"""

from __future__ import annotations

import errno
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from builder.credentials import hide, reason
from builder.problem import BuilderError, OptionError, UsageError
from builder.push.gates import PushFile

if TYPE_CHECKING:
    from huggingface_hub import HfApi

DATASET = "dataset"
MAIN = "main"


@dataclass(frozen=True, slots=True)
class Place:
    """Where to push. `revision`: a branch, or the ref of a pull request."""

    repo: str
    revision: str = MAIN
    private: bool = True


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on the Hub; `sha256` is None for a file that is stored inside the commit."""

    path: str
    size: int
    git_oid: str
    sha256: str | None

    def matches(self, file: PushFile) -> bool:
        """Returns whether it has the same bytes."""
        if self.size != file.size:
            return False
        return self.git_oid == file.git_oid if self.sha256 is None else self.sha256 == file.sha256


@dataclass(frozen=True, slots=True)
class HubRepository:
    """A repository at a revision.

    head        its newest commit; None if there is no repository
    private     None if there is no repository
    has_branch  False: the revision does not exist yet; `head` and `files` are those of main
    """

    head: str | None
    private: bool | None
    files: dict[str, RemoteFile]
    has_branch: bool = True


def repository_at(api: HfApi, place: Place) -> HubRepository:
    """Returns the repository, or one without a head if there is none.

    Passes on the client's exceptions for other faults.
    """
    from huggingface_hub.errors import (  # noqa: PLC0415 - the client is heavy
        GatedRepoError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        info = api.dataset_info(place.repo, revision=place.revision)
    except RevisionNotFoundError:
        if place.revision == MAIN:
            raise
        return replace(repository_at(api, replace(place, revision=MAIN)), has_branch=False)
    except GatedRepoError:
        raise
    except RepositoryNotFoundError:
        return HubRepository(None, None, {}, has_branch=place.revision == MAIN)
    assert info.sha is not None
    return HubRepository(info.sha, bool(info.private), _tree(api, place.repo, info.sha))


def _tree(api: HfApi, repo: str, commit: str) -> dict[str, RemoteFile]:
    from huggingface_hub.hf_api import RepoFile  # noqa: PLC0415 - the client is heavy

    listed = api.list_repo_tree(repo, repo_type=DATASET, revision=commit, recursive=True)
    return {
        item.path: RemoteFile(
            item.path, item.size, item.blob_id, item.lfs.sha256 if item.lfs is not None else None
        )
        for item in listed
        if isinstance(item, RepoFile)
    }


def create(api: HfApi, place: Place, remote: HubRepository) -> HubRepository:
    """Creates the repository and the branch if they are missing, and returns the repository."""
    if remote.head is None:
        api.create_repo(place.repo, repo_type=DATASET, private=place.private, exist_ok=True)
        remote = repository_at(api, place)
    if remote.head is None:
        raise ConnectionError("the repository was created but is not available yet")
    if not remote.has_branch:
        if place.revision.startswith("refs/"):
            raise OptionError("revision", f" {place.revision!r}: {place.repo} has no such ref")
        api.create_branch(place.repo, branch=place.revision, repo_type=DATASET, exist_ok=True)
        remote = repository_at(api, place)
    return remote


def pull_request(api: HfApi, repo: str, title: str) -> str:
    """Returns the ref of the open pull request with this title, and opens one if there is none."""
    listed = api.get_repo_discussions(repo, repo_type=DATASET, discussion_type="pull_request")
    for item in listed:
        if item.title == title and item.status in ("draft", "open"):
            return f"refs/pr/{item.num}"
    opened = api.create_pull_request(repo, title, repo_type=DATASET)
    return f"refs/pr/{opened.num}"


def tagged(api: HfApi, repo: str, tag: str) -> str | None:
    """Returns the commit of a tag, or None."""
    refs = api.list_repo_refs(repo, repo_type=DATASET)
    return next((item.target_commit for item in refs.tags if item.name == tag), None)


def commit(
    api: HfApi,
    place: Place,
    files: Sequence[PushFile],
    removed: Sequence[str],
    *,
    parent: str,
    message: str,
) -> str:
    """Uploads the files, commits them on top of `parent` and returns the commit's id.

    The client sends the commit once. Passes on its exceptions; HTTP 412 if the head has moved.
    """
    from huggingface_hub import (  # noqa: PLC0415 - the client is heavy
        CommitOperationAdd,
        CommitOperationDelete,
    )

    def operations() -> Iterator[CommitOperationAdd | CommitOperationDelete]:
        for path in removed:
            yield CommitOperationDelete(path)
        for file in files:
            content = file.content if isinstance(file.content, bytes) else str(file.content)
            yield CommitOperationAdd(file.path, content)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice about the card's metadata
        created = api.create_commit(
            place.repo,
            operations(),
            commit_message=message,
            repo_type=DATASET,
            revision=place.revision,
            parent_commit=parent,
        )
    return created.oid


# -- retries after faults of the Hub and of the network --------------------------------------------

ATTEMPTS = 5
WAITS = (1.0, 4.0, 16.0, 60.0)
"""Seconds before the second, third, … attempt, if the Hub does not ask for another delay."""

_LONGEST_WAIT = 300.0
"""Seconds. If the Hub asks for a longer delay, the push ends; the same command resumes it."""

_RETRIED = (408, 409, 412, 425, 429)
_LOCAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOENT)
_FULL = "No space left on device"  # from the storage library, which has no status codes
_T = TypeVar("_T")


class PushFault(BuilderError):
    """Ends a push early, with a message of one line. The Hub is left as it is."""


@dataclass(slots=True)
class Retries:
    """How a push reports and waits before a retry; uploads attempted, and seconds waited."""

    report: Callable[[str], object]
    sleep: Callable[[float], None]
    attempts: int = 0
    waits: list[float] = field(default_factory=list)


def with_retries(
    act: Callable[[], _T], retries: Retries, *, what: str, counted: bool = False
) -> _T:
    """Returns the result of `act`; retries it after faults of the Hub and of the network.

    Raises UsageError for what only the user can fix, PushFault if it keeps failing.
    """
    for attempt in range(1, ATTEMPTS + 1):
        retries.attempts += counted
        try:
            return act()
        except (PushFault, UsageError):
            raise
        except Exception as error:
            message, asked = _judge(error, what)
            if attempt == ATTEMPTS:
                raise PushFault(f"{message} ({ATTEMPTS} attempts)") from None
            wait = WAITS[attempt - 1] if asked is None else asked
            if wait > _LONGEST_WAIT:
                raise PushFault(f"{message}; the Hub asks to wait {wait:g} seconds") from None
            retries.report(f"{message}; attempt {attempt + 1} of {ATTEMPTS} in {wait:g} s")
            retries.waits.append(wait)
            retries.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def _judge(error: Exception, what: str) -> tuple[str, float | None]:
    """Returns (a message of one line, the seconds that the Hub asks to wait) for a retry.

    Raises UsageError or PushFault for what a retry cannot fix, and the error itself if it is a bug.
    """
    response = next((item for item in map(_response, _causes(error)) if item is not None), None)
    if (isinstance(error, OSError) and error.errno in _LOCAL) or _FULL in str(error):
        raise PushFault(f"{what}: {reason(error)}") from None
    if response is None:
        if type(error).__name__ == "OfflineModeIsEnabled":
            raise UsageError(f"{what}: HF_HUB_OFFLINE is set") from None
        if not is_network_fault(error):
            if isinstance(error, ValueError):
                raise UsageError(f"{what}: {reason(error)}") from None
            raise error
        return f"{what}: {reason(error)}", None
    status = int(response.status_code)
    place = f"{response.request.method} {response.request.url.path}"
    answer = hide(" ".join(str(response.headers.get("X-Error-Message") or "").split()))[:200]
    message = f"{what}: HTTP {status} at {place}" + (f" ({answer})" if answer else "")
    if status == 401:
        raise UsageError(f"{message}: the token is not accepted; `hf auth login`, or HF_TOKEN")
    if status == 403:
        raise UsageError(f"{message}: the token may not write there")
    if status not in _RETRIED and status < 500:
        raise PushFault(message)
    return message, _asked_wait(response)


def _asked_wait(response: Any) -> float | None:
    """Returns the seconds in `Retry-After`, or in `t` of an exhausted `RateLimit`."""
    after = str(response.headers.get("Retry-After") or "").strip()
    if not after.isdecimal():
        limit = str(response.headers.get("RateLimit") or "")
        wait = re.search(r";\s*r\s*=\s*0\s*;\s*t\s*=\s*(\d+)", limit)
        after = wait[1] if wait and response.status_code == 429 else ""
    return float(after) if after else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    item: BaseException | None = error
    while item is not None and id(item) not in seen:
        seen.add(id(item))
        yield item
        item = item.__cause__ or item.__context__


def _response(error: BaseException) -> Any:
    response = getattr(error, "response", None)
    return response if hasattr(response, "status_code") else None


def is_network_fault(error: BaseException) -> bool:
    """Returns whether the connection, a response or the storage library caused the error."""
    modules = {type(item).__module__.partition(".")[0] for item in _causes(error)}
    if modules & {"httpx", "httpx2", "httpcore", "httpcore2", "requests", "hf_xet"}:
        return True
    kinds = (OSError, RuntimeError, json.JSONDecodeError)
    return any(isinstance(item, kinds) for item in _causes(error))
