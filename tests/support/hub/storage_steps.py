"""Protocol steps for the bytes of files: LFS, Xet storage, downloads."""

from __future__ import annotations

import hashlib
import json
import re
import time

from support.hub.state import Answer, Asked, Refused


def batch(ask: Asked) -> Answer:
    hub, objects = ask.hub, []
    ask.repo()
    for asked in json.loads(ask.body)["objects"]:
        sha, size = asked["oid"], asked["size"]
        reported: dict[str, object] = {"oid": sha, "size": size}
        if not hub.has(sha):
            upload: dict[str, object] = {"href": f"{hub.url}/lfs/{sha}?signature=secret"}
            if hub.part and size > hub.part:
                count = -(-size // hub.part)
                urls = {str(n): f"{hub.url}/lfs/{sha}/{n}?signature=s" for n in range(1, count + 1)}
                upload["href"] = f"{hub.url}/lfs/{sha}/complete"
                upload["header"] = {"chunk_size": str(hub.part), **urls}
            reported["actions"] = {
                "upload": upload,
                "verify": {"href": f"{hub.url}/lfs/{sha}/verify"},
            }
        objects.append(reported)
    return _json({"transfer": "basic", "objects": objects})


def put(ask: Asked) -> Answer:
    sha, digest = ask.named["sha"], hashlib.sha256(ask.body).hexdigest()
    if "part" in ask.named:
        ask.hub.parts.setdefault(sha, {})[int(ask.named["part"])] = ask.body
    elif digest != sha:
        raise Refused(400, "the bytes are not those of the object")
    else:
        ask.hub.objects[sha] = ask.body
    return 200, b"", {"ETag": f'"{digest[:32]}"'}


def complete(ask: Asked) -> Answer:
    sha = ask.named["sha"]
    parts = ask.hub.parts.pop(sha, {})
    whole = b"".join(parts[item["partNumber"]] for item in json.loads(ask.body)["parts"])
    if hashlib.sha256(whole).hexdigest() != sha:
        raise Refused(400, "the bytes are not those of the object")
    ask.hub.objects[sha] = whole
    return _json({})


def verify(ask: Asked) -> Answer:
    asked = json.loads(ask.body)
    if len(ask.hub.objects.get(asked["oid"], b"")) != asked["size"]:
        raise Refused(404, "no such object")
    return _json({})


def xet_token(ask: Asked) -> Answer:
    ask.repo()
    url, until = f"{ask.hub.url}/cas", int(time.time()) + 3600
    headers = {
        "X-Xet-Cas-Url": url,
        "X-Xet-Access-Token": "storage-key",
        "X-Xet-Token-Expiration": str(until),
    }
    reported = {"casUrl": url, "accessToken": "storage-key", "exp": until}
    return 200, json.dumps(reported).encode(), headers


def xorb(ask: Asked) -> Answer:
    storage, name = ask.hub.xet, ask.named["sha"]
    known = name in storage.xorbs
    storage.xorbs[name] = ask.body
    return _json({"was_inserted": not known})


def shard(ask: Asked) -> Answer:
    with ask.hub.lock:
        ask.hub.xet.add_shard(ask.body)
    return _json({"result": 1})


def rebuild(ask: Asked) -> Answer:
    hub, name = ask.hub, ask.named["sha"]
    if name not in hub.xet.files:
        raise Refused(404, "no such file")
    first, last = 0, hub.xet.size(name) - 1
    if asked := re.fullmatch(r"bytes=(\d+)-(\d+)", ask.headers.get("range", "")):
        first, last = int(asked[1]), min(int(asked[2]), last)
    if first > last:
        raise Refused(416, "behind the end")
    return _json(hub.xet.reconstruction(name, first, last, f"{hub.url}/{ask.named['own']}"))


def xorb_bytes(ask: Asked) -> Answer:
    return _ranged(ask, ask.hub.xet.xorbs[ask.named["sha"]], {})


def resolve(ask: Asked) -> Answer:
    hub, repo = ask.hub, ask.repo()
    commit = ask.at(repo)
    entry = repo.tree(commit).get(ask.named["path"])
    if entry is None:
        raise Refused(404, "Entry not found", "EntryNotFound")
    headers = {"X-Repo-Commit": commit, "ETag": f'"{entry.sha256 or entry.oid}"'}
    if entry.sha256 is not None:
        headers["X-Linked-Etag"] = f'"{entry.sha256}"'
        headers["X-Linked-Size"] = str(entry.size)
        if entry.sha256 in hub.xet.hashes and not hub.spoiled:
            headers["X-Xet-Hash"] = hub.xet.hashes[entry.sha256]
            route = f"{hub.url}/api/datasets/{repo.name}/xet-read-token/{commit}"
            headers["X-Xet-Refresh-Route"] = route
    if ask.command == "HEAD":
        return 200, b"", {**headers, "Content-Length": str(entry.size)}
    was, now = hub.spoiled.get(ask.named["path"], (b"", b""))
    content = hub.content(entry)
    return _ranged(ask, content.replace(was, now) if was else content, headers)


def _ranged(ask: Asked, content: bytes, headers: dict[str, str]) -> Answer:
    headers = {**headers, "Content-Type": "application/octet-stream", "Accept-Ranges": "bytes"}
    asked = re.fullmatch(r"bytes=(\d+)-(\d*)", ask.headers.get("range", ""))
    if asked is None:
        return 200, content, headers
    first, last = int(asked[1]), min(int(asked[2] or len(content)), len(content) - 1)
    if first > last:
        raise Refused(416, "behind the end")
    headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
    return 206, content[first : last + 1], headers


def _json(value: object) -> Answer:
    return 200, json.dumps(value).encode(), {}
