CREATE TABLE sessions (id TEXT PRIMARY KEY, channel TEXT NOT NULL, created_at INTEGER NOT NULL, last_active_at INTEGER NOT NULL, summary TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL, tool_calls TEXT, tool_call_id TEXT, created_at INTEGER NOT NULL);
INSERT INTO sessions VALUES ('cli:1', 'cli', 1, 2, NULL);
INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, created_at) VALUES ('cli:1', 'user', '"Both?"', NULL, NULL, 1);
INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, created_at) VALUES ('cli:1', 'assistant', '"Looking."', '[{"id": "c1", "name": "read_file", "arguments": {"path": "a"}}, {"id": "c2", "name": "read_file", "arguments": {"path": "b"}}]', NULL, 1);
INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, created_at) VALUES ('cli:1', 'tool', '"error: no such file"', NULL, 'c2', 1);
INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, created_at) VALUES ('cli:1', 'tool', '"text"', NULL, 'c1', 1);
INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, created_at) VALUES ('cli:1', 'assistant', '"One failed."', NULL, NULL, 1);
