"""Protocol steps for repositories: commits, trees, branches, tags, pull requests."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from urllib.parse import parse_qs, urlsplit

import yaml

from support.hub.repos import Entry, pointer, regular
from support.hub.state import Answer, Asked, Refused, State


def create(ask: Asked) -> Answer:
    hub, asked = ask.hub, json.loads(ask.body)
    name = f"{asked.get('organization') or 'team'}/{asked['name']}"
    url = f"{hub.url}/datasets/{name}"
    assert asked["type"] == "dataset"
    with hub.lock:
        if name in hub.repos:
            raise Refused(409, "You already created this dataset repo", url=url, name=name)
        hub.add_repo(name, {}, private=asked.get("visibility") == "private")
    return _json({"url": url, "name": name})


def validate(ask: Asked) -> Answer:
    text = json.loads(ask.body)["content"]
    found = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    try:
        about = yaml.safe_load(found[1]) if found else {}
        errors = [] if isinstance(about, dict) else [{"message": "no mapping"}]
    except yaml.YAMLError as error:
        errors = [{"message": str(error)}]
    if errors:
        raise Refused(400, "Invalid metadata", errors=errors, warnings=[])
    return _json({"errors": [], "warnings": []})


def who(ask: Asked) -> Answer:
    return _json({"name": "team", "type": "user"})


def preupload(ask: Asked) -> Answer:
    repo, hub = ask.repo(), ask.hub
    tree = repo.tree(ask.at(repo))
    files = []
    for asked in json.loads(ask.body)["files"]:
        path, size = asked["path"], asked["size"]
        entry = tree.get(path)
        large = path.endswith(".parquet") or size >= hub.lfs_from
        reported = {"path": path, "uploadMode": "lfs" if large else "regular"}
        reported["shouldIgnore"] = path in repo.ignored
        if entry is not None:
            reported["oid"] = entry.sha256 or entry.oid
        files.append(reported)
    return _json({"files": files})


def commit(ask: Asked) -> Answer:
    hub, repo = ask.hub, ask.repo()
    lines = [json.loads(line) for line in ask.body.splitlines()]
    header = next(line["value"] for line in lines if line["key"] == "header")
    revision = ask.named["rev"]
    ref = revision if revision.startswith("refs/") else f"refs/heads/{revision}"
    with repo.lock:
        head = ask.at(repo)
        if header.get("parentCommit", head) != head:
            raise Refused(412, "A commit has happened since. Please refresh and try again.")
        tree = repo.tree(head)
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                content = base64.b64decode(value["content"])
                hub.arrived(value["path"], len(content))
                tree[value["path"]] = regular(content)
            elif line["key"] == "lfsFile":
                if not hub.has(value["oid"]):
                    raise Refused(400, f"no such object: {value['path']}")
                tree[value["path"]] = pointer(value["oid"], value["size"])
            elif line["key"] == "deletedFile":
                del tree[value["path"]]
        oid = repo.commit(ref, header["summary"], tree)
        hub.commits_made += 1
    url = f"{hub.url}/datasets/{repo.name}/commit/{oid}"
    return _json({"success": True, "commitOid": oid, "commitUrl": url, "hookOutput": ""})


def look(ask: Asked) -> Answer:
    repo = ask.repo()
    commit = ask.at(repo)
    siblings = [{"rfilename": path} for path in repo.tree(commit)]
    reported = {"id": repo.name, "sha": commit, "private": repo.private, "siblings": siblings}
    return _json({**reported, "tags": [], "gated": False, "disabled": False})


def tree(ask: Asked) -> Answer:
    repo, hub = ask.repo(), ask.hub
    below = ask.named["path"].rstrip("/") + "/" if "path" in ask.named else ""
    deep = ask.query.get("recursive", "").lower() in ("true", "1")
    listed: dict[str, dict[str, object]] = {}
    for path, entry in sorted(repo.tree(ask.at(repo)).items()):
        if not path.startswith(below):
            continue
        folders = path.removeprefix(below).split("/")[:-1]
        for depth in range(len(folders) if deep else min(1, len(folders))):
            folder = below + "/".join(folders[: depth + 1])
            oid = hashlib.sha1(folder.encode()).hexdigest()
            listed[folder] = {"type": "directory", "oid": oid, "size": 0, "path": folder}
        if deep or not folders:
            listed[path] = _description(ask.hub, path, entry)
    if below and not listed:
        raise Refused(404, "no such folder", "EntryNotFound")
    rows, start = list(listed.values()), int(ask.query.get("cursor", 0))
    headers = {}
    if start + hub.page < len(rows):
        kept = {key: value for key, value in ask.query.items() if key != "cursor"}
        queries = "&".join(f"{key}={value}" for key, value in kept.items())
        path = urlsplit(ask.path).path
        link = f"{hub.url}{path}?{queries}&cursor={start + hub.page}"
        headers["Link"] = f'<{link}>; rel="next"'
    return 200, json.dumps(rows[start : start + hub.page]).encode(), headers


def _description(hub: State, path: str, entry: Entry) -> dict[str, object]:
    reported: dict[str, object] = {
        "type": "file",
        "oid": entry.oid,
        "size": entry.size,
        "path": path,
    }
    if entry.sha256 is not None:
        reported["lfs"] = {"oid": entry.sha256, "size": entry.size, "pointerSize": 134}
        if entry.sha256 in hub.xet.hashes:
            reported["xetHash"] = hub.xet.hashes[entry.sha256]
    return reported


def paths(ask: Asked) -> Answer:
    repo = ask.repo()
    tree = repo.tree(ask.at(repo))
    asked = json.loads(ask.body) if ask.body.startswith(b"{") else {}
    paths = asked.get("paths") or parse_qs(ask.body.decode()).get("paths", [])
    rows = [_description(ask.hub, path, tree[path]) for path in paths if path in tree]
    rows += [
        {"type": "directory", "oid": "0" * 40, "size": 0, "path": path}
        for path in paths
        if path not in tree and any(item.startswith(f"{path}/") for item in tree)
    ]
    return _json(rows)


def refs(ask: Asked) -> Answer:
    repo = ask.repo()
    reported: dict[str, list[dict[str, str]]] = {}
    for key, prefix in (
        ("branches", "refs/heads/"),
        ("tags", "refs/tags/"),
        ("pullRequests", "refs/pr/"),
    ):
        reported[key] = [
            {"name": ref.removeprefix(prefix), "ref": ref, "targetCommit": commit}
            for ref, commit in repo.refs.items()
            if ref.startswith(prefix)
        ]
    return _json({**reported, "converts": []})


def branch(ask: Asked) -> Answer:
    repo = ask.repo()
    ref = f"refs/heads/{ask.named['rev']}"
    with repo.lock:
        if ref in repo.refs:
            raise Refused(409, "Reference already exists")
        start = repo.resolve(json.loads(ask.body or b"{}").get("startingPoint", "main"))
        assert start is not None
        repo.refs[ref] = start
    return _json({})


def tag(ask: Asked) -> Answer:
    repo = ask.repo()
    ref = f"refs/tags/{json.loads(ask.body)['tag']}"
    with repo.lock:
        if ref in repo.refs:
            raise Refused(409, "Tag reference exists already")
        repo.refs[ref] = ask.at(repo)
    return _json({})


def pull(ask: Asked) -> Answer:
    repo, asked = ask.repo(), json.loads(ask.body)
    with repo.lock:
        repo.titles.append(asked["title"])
        number = len(repo.titles)
        repo.refs[f"refs/pr/{number}"] = repo.refs["refs/heads/main"]
    return _json({"num": number, "pullRequest": asked["pullRequest"]})


def pulls(ask: Asked) -> Answer:
    repo = ask.repo()
    listed = [
        {
            "num": number,
            "title": title,
            "author": {"name": "team"},
            "createdAt": "2026-01-01T00:00:00.000Z",
            "status": "draft",
            "repo": {"name": repo.name, "type": "dataset"},
            "isPullRequest": True,
        }
        for number, title in enumerate(repo.titles, start=1)
    ]
    if "number" not in ask.named:
        return _json({"count": len(listed), "start": 0, "discussions": listed})
    one = listed[int(ask.named["number"]) - 1]
    base = {"base": "refs/heads/main", "mergeCommitId": None}
    return _json({**one, "changes": base, "filesWithConflicts": [], "events": [], "diff": ""})


def _json(value: object) -> Answer:
    return 200, json.dumps(value).encode(), {}
