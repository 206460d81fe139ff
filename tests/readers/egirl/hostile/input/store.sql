CREATE TABLE sessions (id TEXT PRIMARY KEY, channel TEXT NOT NULL, created_at INTEGER NOT NULL, last_active_at INTEGER NOT NULL);
CREATE TABLE messages (id, session_id, role, content, tool_calls, tool_call_id, created_at);
-- one id as a number and as text: two sessions
INSERT INTO messages VALUES (1, 1, 'user', '"hi"', NULL, NULL, 1);
INSERT INTO messages VALUES (2, 1, 'assistant', '"hello"', '', NULL, 1);
INSERT INTO messages VALUES (3, '1', 'user', X'22626c6f6222', NULL, NULL, 1);
INSERT INTO messages VALUES (4, '1', 'assistant', '"read"', 'null', NULL, 1);
-- no session, values of other types
INSERT INTO messages VALUES (5, NULL, 7, 7, NULL, 7, 1);
INSERT INTO messages VALUES (6, NULL, 'tool', NULL, NULL, 7, 1);
-- calls that are no list, no JSON, no calls; a row whose content is broken still logs its call
INSERT INTO messages VALUES (10, 'c', 'user', '"go"', NULL, NULL, 1);
INSERT INTO messages VALUES (11, 'c', 'assistant', '""', '{"id": "c1", "name": "exec", "arguments": {}}', NULL, 1);
INSERT INTO messages VALUES (12, 'c', 'tool', '{"exit": 0}', NULL, 'c1', 1);
INSERT INTO messages VALUES (13, 'c', 'assistant', '""', '[{"id": "c2", "na', NULL, 1);
INSERT INTO messages VALUES (14, 'c', 'assistant', '"cut', '[{"id": "c3", "name": "exec", "arguments": {}}]', NULL, 1);
-- a summary that the program wrote would stand in sessions; a system row is a message
INSERT INTO messages VALUES (20, 's', 'system', '"You are kind."', NULL, NULL, 1);
INSERT INTO messages VALUES (21, 's', 'user', '"Again?"', NULL, NULL, 1);
INSERT INTO messages VALUES (22, 's', 'assistant', '[{"type": "text", "text": "Yes."}, {"type": "text", "text": 1}]', NULL, NULL, 1);
