CREATE TABLE sessions (id TEXT PRIMARY KEY, channel TEXT NOT NULL, created_at INTEGER NOT NULL, last_active_at INTEGER NOT NULL, summary TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL, tool_calls TEXT, tool_call_id TEXT, created_at INTEGER NOT NULL);
INSERT INTO sessions VALUES ('discord:dm:1', 'cli', 1, 2, 'They spoke of files.');
INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, created_at) VALUES ('discord:dm:1', 'tool', '"left over"', NULL, 'c0', 1);
INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, created_at) VALUES ('discord:dm:1', 'assistant', '"So it was."', NULL, NULL, 1);
INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, created_at) VALUES ('discord:dm:1', 'user', '"And now?"', NULL, NULL, 1);
INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, created_at) VALUES ('discord:dm:1', 'assistant', '"Nothing."', NULL, NULL, 1);
INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, created_at) VALUES ('discord:dm:1', 'user', '"Look"', NULL, NULL, 1);
INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, created_at) VALUES ('discord:dm:1', 'assistant', '""', '[{"id": "c9", "name": "exec", "arguments": {"command": "ls"}}]', NULL, 1);
