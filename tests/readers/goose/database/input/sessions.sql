-- sessions.db of Goose 1.10 and later: the columns that are read.
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, session_type TEXT, working_dir TEXT, provider_name TEXT, model_config_json TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);

INSERT INTO sessions VALUES
  ('20260301_1', 'Weather', 'user', '/project', 'p', '{"model_name":"m-1"}'),
  ('20260301_2', 'Compacted', 'user', '/project', 'p', NULL),
  ('20260301_3', 'Damaged', 'user', '/project', 'p', '{"model'),
  ('20260301_4', 'Empty', 'hidden', '/project', 'p', NULL);

INSERT INTO messages (message_id, session_id, role, content_json, metadata_json) VALUES
  ('u1', '20260301_1', 'user', '[{"type":"text","text":"Weather in Bern?"}]', '{"userVisible":true,"agentVisible":true}'),
  ('a1', '20260301_1', 'assistant', '[{"type":"text","text":"One moment."}]', NULL),
  ('a1', '20260301_1', 'assistant', '[{"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"weather__get","arguments":{"city":"Bern"}}}}]', NULL),
  ('u2', '20260301_1', 'user', '[{"type":"toolResponse","id":"c1","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"8 °C"}],"isError":false}}}]', NULL),
  ('a2', '20260301_1', 'assistant', '[{"type":"text","text":"8 °C."}]', NULL);

INSERT INTO messages (message_id, session_id, role, content_json, metadata_json) VALUES
  ('u1', '20260301_2', 'user', '[{"type":"text","text":"Hello"}]', '{"userVisible":true,"agentVisible":false}'),
  ('a1', '20260301_2', 'assistant', '[{"type":"text","text":"Hello!"}]', '{"userVisible":true,"agentVisible":false}'),
  ('s1', '20260301_2', 'user', '[{"type":"text","text":"They greeted."}]', '{"userVisible":false,"agentVisible":true}'),
  ('u2', '20260301_2', 'user', '[{"type":"text","text":"Bye"}]', NULL),
  ('a2', '20260301_2', 'assistant', '[{"type":"text","text":"Bye!"}]', NULL);

INSERT INTO messages (message_id, session_id, role, content_json, metadata_json) VALUES
  ('u1', '20260301_3', 'user', '[{"type":"te', NULL),
  ('a1', '20260301_3', 'assistant', '[{"type":"text","text":"What?"}]', '{"user');
