-- state.db of Hermes Agent: the columns that are read.
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, system_prompt TEXT, parent_session_id TEXT, started_at REAL);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL, finish_reason TEXT, reasoning TEXT, reasoning_content TEXT, reasoning_details TEXT, active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0);

INSERT INTO sessions VALUES
  ('s1', 'cli', 'hermes-4', 'You are Hermes.', NULL, 1.5),
  ('s2', 'cli', 'hermes-4', NULL, 's1', 2.5),
  ('s3', 'cli', 'hermes-4', 'You are Hermes.', NULL, 3.5);

INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, finish_reason, reasoning) VALUES
  ('s1', 'user', char(0) || 'json:[{"type":"text","text":"Oslo and Rome?"},{"type":"image_url","image_url":{"url":"data:,"}}]', NULL, NULL, NULL, NULL, NULL),
  ('s1', 'assistant', '', NULL, '[{"id":"fc_1","call_id":"c1","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Oslo\"}"}},{"id":"c2","call_id":"c2","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Rome\"}"}}]', NULL, 'tool_calls', 'Two calls.'),
  ('s1', 'tool', '21 °C', 'c2', NULL, 'get_weather', NULL, NULL),
  ('s1', 'tool', '{"error": "timeout"}', 'c1', NULL, 'get_weather', NULL, NULL),
  ('s1', 'assistant', '21 °C in Rome.', NULL, NULL, NULL, 'stop', NULL);

-- Two histories that the model no longer sees, and the one that it does.
INSERT INTO messages (session_id, role, content, active, compacted) VALUES
  ('s2', 'user', 'Hello', 0, 1),
  ('s2', 'assistant', 'Hello!', 0, 1),
  ('s2', 'user', 'Delete all', 0, 0),
  ('s2', 'assistant', 'Deleted.', 0, 0),
  ('s2', 'user', 'They greeted. Bye', 1, 0),
  ('s2', 'assistant', 'Bye!', 1, 0);

INSERT INTO messages (session_id, role, content, tool_calls) VALUES
  ('s3', 'user', 'Hello', NULL),
  ('s3', 'assistant', 'One moment.', '[{"id":'),
  ('s3', 'user', char(0) || 'json:[{"ty', NULL),
  ('s3', 'assistant', 'Done.', NULL);
