"""Accesses a dataset repository on the Hub through `huggingface_hub`.

Every commit names its parent, so no commit is made twice and none reverts a concurrent change. (The
client's own folder upload does not do this: on one of its two paths it repeats a commit whose
response was lost, on the other it gives up.)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from builder.problem import OptionError
from builder.push.files import PushFile

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
