"""Cases of egirl's store that a reader case cannot express: views, limits, corrupt pages."""

import sqlite3

import pytest

from builder.readers import recognise
from builder.sources.source import Source

SESSIONS = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, channel TEXT, created_at INT, last_active_at INT);
"""
MESSAGES = """
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT,
    content TEXT, tool_calls TEXT, tool_call_id TEXT, created_at INT);
CREATE INDEX idx_messages_session ON messages(session_id, id);
"""
ENDLESS = """
CREATE VIEW messages AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)
    SELECT id, 's' AS session_id, 'user' AS role, '"hi"' AS content, NULL AS tool_calls,
    NULL AS tool_call_id, 1 AS created_at FROM n;
"""


@pytest.fixture
def store(tmp_path):
    """Creates a store from a script and rows of (session, role, content, tool_calls)."""

    def make(script, rows=()):
        path = tmp_path / "conversations.db"
        with sqlite3.connect(path) as made:
            made.executescript(script)
            for row in rows:
                columns = "session_id, role, content, tool_calls"
                made.execute(f"INSERT INTO messages ({columns}) VALUES (?, ?, ?, ?)", row)
        made.close()
        return path

    return make


def test_an_endless_view_is_not_recognised_as_a_store(store):
    assert recognise(Source("s.db", store(SESSIONS + ENDLESS))) == {}


def test_a_database_without_the_columns_is_not_recognised(store):
    assert recognise(Source("s.db", store(MESSAGES))) == {}
    other = "CREATE TABLE sessions (id); CREATE TABLE messages (id, role, content);"
    assert recognise(Source("s.db", store("DROP TABLE messages;" + other))) == {}
