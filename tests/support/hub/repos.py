"""Repositories of the stand-in: content-addressed objects, commits, branches, tags, requests."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field


def git_oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass(frozen=True)
class Entry:
    """A file of a commit: its bytes, or the sha256 of a separately uploaded object."""

    size: int
    oid: str
    content: bytes | None = None
    sha256: str | None = None


def regular(content: bytes) -> Entry:
    return Entry(len(content), git_oid(content), content=content)


def pointer(sha256: str, size: int) -> Entry:
    text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n"
    return Entry(size, git_oid(text.encode()), sha256=sha256)


@dataclass(frozen=True)
class Commit:
    parent: str | None
    title: str
    tree: dict[str, Entry]


@dataclass
class Repo:
    name: str
    private: bool
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    titles: list[str] = field(default_factory=list)  # commits of pull requests, from number 1
    ignored: set[str] = field(default_factory=set)  # patterns that its .gitignore excludes
    lock: threading.RLock = field(default_factory=threading.RLock)

    def commit(self, ref: str, title: str, tree: dict[str, Entry]) -> str:
        parent = self.refs.get(ref)
        reported = repr(
            (parent, title, len(self.commits), sorted((p, e.oid) for p, e in tree.items()))
        )
        oid = hashlib.sha1(reported.encode()).hexdigest()
        self.commits[oid] = Commit(parent, title, dict(tree))
        self.refs[ref] = oid
        return oid

    def resolve(self, revision: str) -> str | None:
        """Returns the commit of a branch, tag, other ref or commit id."""
        if revision in self.commits:
            return revision
        for ref in (f"refs/heads/{revision}", f"refs/tags/{revision}", revision):
            if ref in self.refs:
                return self.refs[ref]
        return None

    def tree(self, revision: str = "main") -> dict[str, Entry]:
        commit = self.resolve(revision)
        return dict(self.commits[commit].tree) if commit else {}

    def history(self, revision: str = "main") -> list[str]:
        """Returns the titles of its commits, the latest first."""
        titles, at = [], self.resolve(revision)
        while at is not None:
            titles.append(self.commits[at].title)
            at = self.commits[at].parent
        return titles
