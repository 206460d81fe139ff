"""Reads the store of a session of Mistral Vibe 3. Source: docs/formats/mistral-vibe.md."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import Context, Event, Ignored, Json, Message
from builder.jsonio import packed
from builder.problem import Problem
from builder.readers.agents.mistral_vibe.messages import stored_message
from builder.readers.toolkit.finish_reasons import finish_fault
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, tuple_or_none
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import objects
from builder.sources.source import Source

STORE_FORMAT = "mistral.vibe.unified-session-store"
NAME = "mistral-vibe"


def read_store(source: Source, session: str) -> Iterator[Event]:
    """Yields the conversations of a session's folder.

    Records are the messages of the current checkpoint and the lines of the journals.
    """
    files = {member.name: member for member in source.members}
    current = _object(files.get("CURRENT"))
    folder = f"generations/{as_str(current.get('generation'))}"
    manifest = _object(files.get(f"{folder}/manifest.json"))
    checkpoint = _object(files.get(f"{folder}/checkpoint.json"))
    chunks = [f"chunks/{name}.json" for name in as_list(manifest, "checkpoint", "chunks")]
    journals = sorted(name for name in files if name.startswith("journal/"))
    known = {*chunks, *journals}
    for name, member in files.items():
        if name not in known:
            member.count_records()
            yield Ignored("other_file")
    model = as_str(_object(files.get("meta.json")), "config", "model_name")
    replay = _Replay(SessionHistory(NAME, session, source.name), model or None)
    for name in journals:
        yield from replay.read_journal(files[name])
    yield from replay.read_checkpoint(chunks, files, checkpoint)
    yield from ignored(replay.counts)
    yield from replay.history.conversations(replay.records)


def _object(source: Source | None) -> dict[str, Json]:
    """Returns the object in a file of the store; {} if there is none."""
    document = source.document() if source is not None else None
    return document if isinstance(document, dict) else {}


@dataclass(slots=True)
class _Replay:
    """The replay of the requests in the journals, and of the checkpoint at the end.

    sent      the messages of the last request, without the system message
    matched   how many of them are in the history
    first     the first request in the journal
    answers   the requests in the journal that have no answer yet, by action
    given     the answers so far, by their parts
    is_known  whether the messages of the next request are known (False after a damaged record)
    """

    history: SessionHistory
    model: str | None
    sent: list[Message] = field(default_factory=list)
    matched: int = 0
    system: str | None = None
    tools: tuple[Json, ...] | None = None
    first: RequestHead | None = None
    answers: dict[str, HistoryEntry] = field(default_factory=dict)
    given: dict[str, HistoryEntry] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    records: int = 0
    is_known: bool = False

    def read_journal(self, source: Source) -> Iterator[Event]:
        """Reads the requests and answers of a journal."""
        for record in objects(source.json_lines(), "a record that is "):
            if isinstance(record, Problem):
                self.is_known = False
                yield replace(record, where=f"{source.name} {record.where}")
                continue
            where, value = record
            payload = as_dict(value.get("payload"))
            kind = value.get("type")
            request = as_dict(payload.get("request"))
            result = as_dict(payload, "result", "result")
            if kind == "action_intent" and payload.get("kind") == "completion":
                self.records += 1
                self._request(request, as_str(payload.get("request_sha256")), f"journal {where}")
            elif kind == "action_result" and "finish_reason" in result:
                self.records += 1
                self._answer(as_str(payload.get("action_id")), result)
            else:
                self.counts["no_request"] += 1

    def _request(self, request: dict[str, Json], digest: str, where: str) -> None:
        """Applies a request: its messages replace those before, or are appended to them."""
        update = as_dict(request.get("model_input"))
        messages = as_dict(update.get("messages"))
        catalog = as_dict(update.get("tool_catalog"))
        new = as_dicts(messages.get("messages"))
        if catalog.get("type") == "replace":
            self.tools = tuple_or_none(catalog.get("tools"))
        if messages.get("type") == "replace":
            self.is_known = True
            prompts = [item for item in new if item.get("role") == "system"]
            texts = [stored_message(item) for item in prompts]
            self.system = "\n\n".join(
                "".join(as_str(getattr(part, "text", "")) for part in text.parts) for text in texts
            )
            self.sent, self.matched = [], 0
        self.sent += [stored_message(item) for item in new if item.get("role") != "system"]
        if not self.is_known or request.get("purpose", "agent") != "agent":
            return  # after a damaged record, the checkpoint has the messages
        self.show(self.sent, where, self.matched)
        self.matched = len(self.sent)
        head = RequestHead(self.system or None, self.tools, self.model)
        self.first = self.first or head
        missing = [] if self.tools is not None else ["tools"]
        same = hashlib.sha256(packed_canonically(request)).hexdigest() == digest
        context = Context.lacking(missing, "proven" if same else "rendered")
        entry = HistoryEntry(Message("assistant", (), context=context), where, head)
        self.history.entries.append(entry)
        self.answers[as_str(request.get("action_id"))] = entry

    def _answer(self, action: str, result: dict[str, Json]) -> None:
        """Fills in the answer to a request."""
        entry = self.answers.pop(action, None)
        if entry is None:  # that of a compaction
            return
        parts: list[Json] = []
        for part in as_dicts(result.get("parts")):
            raw = {"type": "json", "raw": part.get("arguments_json")}
            parts.append({**part, "arguments": raw} if part.get("type") == "tool_call" else part)
        answer = stored_message({"role": "assistant", "content": parts})
        code = finish_fault(result.get("finish_reason"))
        entry.message = replace(entry.message, parts=answer.parts, untrained=code)
        self.given[repr(answer.parts)] = entry

    def show(self, shown: Sequence[Message], where: str, same: int = 0) -> None:
        """Brings the history to these messages, of which the first `same` are known to be in it."""
        entries = self.history.entries
        while same < min(len(entries), len(shown)) and _is_same(entries[same], shown[same]):
            same += 1
        is_changed = self.is_known and bool(self.given)  # else answers of an earlier process
        if any(entry.message.parts for entry in entries[same:]):
            self.history.replace(entries[:same])
        else:  # a request without an answer
            self.history.entries = entries[:same]
        for message in shown[same:]:
            key = repr(message.parts)
            if message.role != "assistant":
                self.history.append(message, where)
            elif key in self.given:
                self.history.entries.append(self.given[key])
            else:
                own = replace(message, untrained="edited") if is_changed else message
                self.given[key] = self.history.append(own, where)

    def read_checkpoint(
        self, chunks: Sequence[str], files: dict[str, Source], checkpoint: dict[str, Json]
    ) -> Iterator[Event]:
        """Reads the messages of the checkpoint, which contain those of the last request."""
        found: list[dict[str, Json]] = []
        is_whole = True
        for name in chunks:
            member = files.get(name)
            document = member.document() if member is not None else None
            if member is None or not isinstance(document, list):
                detail = "a chunk of the checkpoint is missing or no list"
                is_whole = False
                if member is not None:
                    member.count_records()
                problem = document if isinstance(document, Problem) else None
                code = problem.code if problem is not None else "missing_file"
                yield Problem(code, name, detail, records=0 if member is None else 1)
                continue
            for record in member.counted(document):
                self.records += 1
                found.append(as_dict(record.value, "message"))
        context = as_dicts(checkpoint, "context", "messages")
        found += [as_dict(item.get("message")) for item in context]
        known = [item for item in found if as_str(item.get("role")) not in ("", "system")]
        shown = [stored_message(item) for item in known]
        ahead = len(self.history.entries) >= len(shown) and all(
            map(_is_same, self.history.entries, shown)
        )
        if known and is_whole and not ahead:  # a checkpoint may be older than the journal
            self.show(shown, "checkpoint")
        for entry in self.history.entries:
            if entry.message.role == "assistant" and entry.request is None:
                entry.request = self.first or RequestHead(model=self.model)
                # of an earlier process, which may have had another prompt and other tools
                lacking = ["system", "tools", *([] if is_whole else ["history"])]
                entry.message = replace(entry.message, context=Context.lacking(lacking))
        self.history.entries = [entry for entry in self.history.entries if entry.message.parts]


def _is_same(entry: HistoryEntry, message: Message) -> bool:
    return (entry.message.role, entry.message.parts) == (message.role, message.parts)


def packed_canonically(value: Json) -> bytes:
    """Returns the bytes of a JSON value in canonical form (RFC 8785), as far as logs need it."""
    return packed(_ordered(value))


def _ordered(value: Json) -> Json:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return {key: _ordered(value[key]) for key in keys}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value
