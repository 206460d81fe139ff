"""The state and counters of the stand-in, and a request as its steps see it."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from dataclasses import dataclass
from email.message import Message

from support.hub.faults import Fault
from support.hub.repos import Entry, Repo, regular
from support.hub.xet import Storage

WRITER, READER, STRANGER = "hf_writerwriterwriter", "hf_readerreaderreader", "hf_other"
USERS = {WRITER: "team", READER: "guest"}

Answer = tuple[int, bytes, dict[str, str]]


class Refused(Exception):
    """An error response."""

    def __init__(self, status: int, message: str, code: str = "", **body: object) -> None:
        self.status, self.message, self.code, self.body = status, message, code, body


class State:
    """The state of the stand-in.

    requests      number of requests of each step
    received      bytes of file content that arrived, by object: complete or cut off
    commits_made  by clients, in all repositories
    spoiled       by path: bytes that downloads contain in place of others
    lfs_from      files of at least this size are uploaded separately from the commit
    page, part    entries on a page of a tree; bytes of a part of an upload (0: in one piece)
    """

    def __init__(self, *, lfs_from: int, page: int, part: int) -> None:
        self.url = ""
        self.repos: dict[str, Repo] = {}
        self.objects: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.xet = Storage()
        self.faults: list[Fault] = []
        self.spoiled: dict[str, tuple[bytes, bytes]] = {}
        self.requests: Counter[str] = Counter()
        self.received: dict[str, list[int]] = {}
        self.commits_made = 0
        self.lfs_from, self.page, self.part = lfs_from, page, part
        self.lock = threading.RLock()

    def add_repo(self, name: str, files: dict[str, bytes], *, private: bool = True) -> Repo:
        repo = self.repos[name] = Repo(name, private)
        tree = {".gitattributes": regular(b"*.parquet filter=lfs diff=lfs merge=lfs -text\n")}
        repo.commit("refs/heads/main", "initial commit", tree)
        if files:
            self.change(name, files)
        return repo

    def change(self, name: str, files: dict[str, bytes]) -> None:
        """Makes a commit as another client."""
        repo = self.repos[name]
        tree = repo.tree() | {path: regular(content) for path, content in files.items()}
        repo.commit("refs/heads/main", "by someone else", tree)

    def arrived(self, name: str, size: int) -> None:
        with self.lock:
            self.received.setdefault(name, []).append(size)

    def twice(self) -> int:
        """Returns bytes of content that arrived more than once: all but each largest arrival."""
        return sum(sum(sizes) - max(sizes) for sizes in self.received.values())

    def has(self, sha256: str) -> bool:
        return sha256 in self.objects or sha256 in self.xet.hashes

    def content(self, entry: Entry) -> bytes:
        """Returns the bytes of a file; the released client assembles those in Xet storage."""
        if entry.content is not None:
            return entry.content
        assert entry.sha256 is not None
        if entry.sha256 not in self.objects:
            self.objects[entry.sha256] = self._from_xet(entry.sha256)
        return self.objects[entry.sha256]

    def _from_xet(self, sha256: str) -> bytes:
        import hf_xet

        name, until = self.xet.hashes[sha256], int(time.time()) + 3600
        group = hf_xet.XetSession().new_download_stream_group(f"{self.url}/own", "own", until)
        wanted = hf_xet.XetFileInfo(name, self.xet.size(name))
        content = b"".join(group.download_stream(wanted))
        assert hashlib.sha256(content).hexdigest() == sha256
        return content


@dataclass(frozen=True)
class Asked:
    """A request. `named` are the parts of its path that its route names."""

    hub: State
    command: str
    path: str
    named: dict[str, str]
    query: dict[str, str]
    headers: Message
    body: bytes

    def repo(self) -> Repo:
        repo = self.hub.repos.get(self.named["name"])
        if repo is None:
            raise Refused(404, "Repository not found", "RepoNotFound")
        return repo

    def at(self, repo: Repo) -> str:
        """Returns the commit that the path names."""
        commit = repo.resolve(self.named.get("rev", "main"))
        if commit is None:
            raise Refused(404, "Invalid rev id", "RevisionNotFound")
        return commit
