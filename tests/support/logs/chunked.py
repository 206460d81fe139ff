"""Inputs that a reader takes in chunks, each of `count` conversations, a few of them corrupt.

`MAKERS[kind](folder, count)` writes one and returns its path.
"""

import json
import sqlite3
import zipfile

import pyarrow
import pyarrow.ipc
import pyarrow.parquet

from support.places import CASES

BROKEN = 7
"""One in this many conversations has a record that cannot be read."""


def content(number):
    """Yields (role, text) of a conversation: numbers never repeat, so that no two are equal."""
    turns = 1 + number % 3
    return [
        (role, f"{number} {turn} {role} " + "x" * (40 * (number % 5)))
        for turn in range(turns)
        for role in ("user", "assistant")
    ]


def rows(count):
    return [
        {
            "messages": [{"role": role, "content": text} for role, text in content(number)]
            if number % BROKEN
            else [{"role": "user", "content": f"{number} unanswered"}],
            "tools": "[]",
        }
        for number in range(count)
    ]


def jsonl(folder, count):
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(count)))
    return path


def parquet(folder, count):
    path = folder / "rows.parquet"
    table = pyarrow.Table.from_pylist(rows(count))
    pyarrow.parquet.write_table(table, path, row_group_size=5)
    return path


def arrow(folder, count, *, compression=None):
    path = folder / "rows.arrow"
    table = pyarrow.Table.from_pylist(rows(count))
    options = pyarrow.ipc.IpcWriteOptions(compression=compression)
    with (
        pyarrow.OSFile(str(path), "wb") as stream,
        pyarrow.ipc.new_file(stream, table.schema, options=options) as out,
    ):
        out.write_table(table, max_chunksize=5)
    return path


def arrow_zstd(folder, count):
    return arrow(folder, count, compression="zstd")


def database(path, schema, tables):
    """Writes a database of `{statement: rows}`, with the schema of a reader's case."""
    script = (CASES / schema).read_text(encoding="utf-8")
    with sqlite3.connect(path) as store:
        for statement in script.split(";\n"):
            if "CREATE TABLE" in statement:
                store.execute(statement[statement.index("CREATE TABLE") :])
        for statement, values in tables.items():
            store.executemany(statement, values)
    store.close()
    return path


def messages(count):
    """Yields (session number, message number in all, role, text or None if it is broken)."""
    at = 0
    for number in range(count):
        for turn, (role, text) in enumerate(content(number)):
            at += 1
            yield number, at, role, text if number % BROKEN or turn != 1 else None


def opencode(folder, count):
    texts = list(messages(count))
    orphans = [(f"zz{n:03}", f"gone{n}", "none", json.dumps(part("lost"))) for n in range(3)]
    return database(
        folder / "opencode.db",
        "opencode/database/input/opencode.sql",
        {
            "INSERT INTO session (id) VALUES (?)": [(f"ses_{n:04}",) for n in range(count)],
            "INSERT INTO message VALUES (?, ?, 0, ?)": [
                (f"msg_{at:06}", f"ses_{n:04}", json.dumps({"role": role, "modelID": "m-1"}))
                for n, at, role, _ in texts
            ],
            "INSERT INTO part VALUES (?, ?, ?, ?)": [
                (f"prt_{at:06}", f"msg_{at:06}", f"ses_{n:04}", json.dumps(part(text)))
                if text
                else (f"prt_{at:06}", f"msg_{at:06}", f"ses_{n:04}", '{"broken')
                for n, at, _, text in texts
            ]
            + orphans,
            "INSERT INTO event VALUES (?, 'ses_0001', 1, 'x', '{}')": [
                (f"e{n}",) for n in range(9)
            ],
            "INSERT INTO session_message VALUES (?, ?, 'user', 1, '{}')": [("s", "ses_none")],
        },
    )


def part(text):
    return {"type": "text", "text": text}


def goose(folder, count):
    return database(
        folder / "sessions.db",
        "goose/database/input/sessions.sql",
        {
            "INSERT INTO sessions (id) VALUES (?)": [(f"{n:04}",) for n in range(count + 2)],
            "INSERT INTO messages (session_id, role, content_json) VALUES (?, ?, ?)": [
                (f"{n:04}", role, json.dumps([part(text)]) if text else "[{")
                for n, _, role, text in messages(count)
            ],
        },
    )


def hermes(folder, count):
    parents = [(f"{n:04}", f"{n - 1:04}", f"You are {n % 2}.") for n in range(count)]
    return database(
        folder / "state.db",
        "hermes-agent/database/input/state.sql",
        {
            "INSERT INTO sessions (id, parent_session_id, system_prompt) VALUES (?, ?, ?)": parents,
            "INSERT INTO messages (session_id, role, content) VALUES (?, ?, ?)": [
                (f"{n:04}", role, text or "\0json:{") for n, _, role, text in messages(count)
            ],
        },
    )


def egirl(folder, count):
    return database(
        folder / "conversations.db",
        "../fixtures/egirl_data.sql",
        {
            "INSERT INTO sessions VALUES (?, 'cli', 0, 0, NULL)": [
                (f"cli:{n:04}",) for n in range(count)
            ],
            "INSERT INTO messages (session_id, role, content, created_at) VALUES (?, ?, ?, 0)": [
                (f"cli:{n:04}", role, json.dumps(text) if text else '"cut')
                for n, _, role, text in messages(count)
            ],
        },
    )


def checkpoints(folder, count):
    """Yields a state after each turn of a thread, its steps' writes, and writes of no thread."""
    states, writes = [], [("none", "1", "t", 0, "x", b"{}")]
    for number in range(count):
        turns = [
            {"type": "human" if role == "user" else "ai", "content": text, "id": f"m{turn}"}
            for turn, (role, text) in enumerate(content(number))
        ]
        for turn in range(len(turns)):
            state = json.dumps({"channel_values": {"messages": turns[: turn + 1]}})
            broken = number % BROKEN == 0 and turn == 0
            above = f"{turn - 1:03}" if turn else None
            states.append((f"t{number:04}", f"{turn:03}", above, "{" if broken else state))
            writes.append((f"t{number:04}", f"{turn:03}", "t", 0, "messages", b"[]"))
    return database(
        folder / "checkpoints.db",
        "langchain/checkpoints/input/checkpoints.sql",
        {
            "INSERT INTO checkpoints (thread_id, checkpoint_id, parent_checkpoint_id, type,"
            " checkpoint) VALUES (?, ?, ?, 'json', ?)": states,
            "INSERT INTO writes (thread_id, checkpoint_id, task_id, idx, channel, type, value)"
            " VALUES (?, ?, ?, ?, ?, 'json', ?)": writes,
        },
    )


def archive(folder, count):
    path = folder / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        about = {"run_id": "run-1", "task_id": "task-1", "model": "toy/model"}
        out.writestr("_journal/start.json", json.dumps({"version": 2, "eval": about}))
        out.writestr("samples/", "")
        for number in range(count):
            listed = [{"role": role, "content": text} for role, text in content(number)]
            sample = json.dumps({"id": number, "epoch": 1, "messages": listed})
            out.writestr(f"samples/{number}_epoch_1.json", sample if number % BROKEN else "{")
            if number % 10 == 9:
                out.writestr(f"_journal/summaries/{number}.json", "[]")
        out.writestr("header.json", json.dumps({"version": 2, "eval": about, "status": "success"}))
    return path


MAKERS = {
    "jsonl": jsonl,
    "parquet": parquet,
    "arrow": arrow,
    "arrow_zstd": arrow_zstd,
    "opencode": opencode,
    "goose": goose,
    "hermes-agent": hermes,
    "egirl": egirl,
    "langchain": checkpoints,
    "inspect-ai": archive,
}
