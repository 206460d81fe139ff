-- opencode.db: only the tables and columns that matter, and two that repeat or are to come.
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, title TEXT, revert TEXT, permission TEXT);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER, data TEXT NOT NULL);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, data TEXT NOT NULL);
CREATE TABLE event (id TEXT PRIMARY KEY, aggregate_id TEXT, seq INTEGER, type TEXT, data TEXT);
CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT, type TEXT, seq INTEGER, data TEXT);

INSERT INTO session (id, revert, permission) VALUES
  ('ses_1', NULL, '[{"permission":"question","pattern":"*","action":"deny"}]'),
  ('ses_2', '{"messageID":"msg_23"}', NULL),
  ('ses_3', NULL, NULL),
  ('ses_4', NULL, NULL);

-- Parallel calls, an error, a call that was still running.
INSERT INTO message (id, session_id, data) VALUES
  ('msg_11', 'ses_1', '{"role":"user","model":{"modelID":"m-1"}}'),
  ('msg_12', 'ses_1', '{"role":"assistant","modelID":"m-1","finish":"tool-calls"}'),
  ('msg_13', 'ses_1', '{"role":"assistant","modelID":"m-1","finish":"stop"}'),
  ('msg_14', 'ses_1', '{"role":"user"}'),
  ('msg_15', 'ses_1', '{"role":"assistant","modelID":"m-1"}');
INSERT INTO part (id, message_id, session_id, data) VALUES
  ('prt_11', 'msg_11', 'ses_1', '{"type":"text","text":"\"Oslo and Rome?\""}'),
  ('prt_12', 'msg_12', 'ses_1', '{"type":"step-start"}'),
  ('prt_13', 'msg_12', 'ses_1', '{"type":"reasoning","text":"Two calls."}'),
  ('prt_15', 'msg_12', 'ses_1', '{"type":"tool","callID":"c2","tool":"get_weather","state":{"status":"error","input":{"city":"Rome"},"error":"timeout"}}'),
  ('prt_14', 'msg_12', 'ses_1', '{"type":"tool","callID":"c1","tool":"get_weather","state":{"status":"completed","input":{"city":"Oslo"},"output":"4 °C"}}'),
  ('prt_16', 'msg_13', 'ses_1', '{"type":"text","text":"4 °C in Oslo."}'),
  ('prt_17', 'msg_14', 'ses_1', '{"type":"text","text":"And Bern?"}'),
  ('prt_18', 'msg_15', 'ses_1', '{"type":"tool","callID":"c3","tool":"get_weather","state":{"status":"running","input":{"city":"Bern"}}}');

-- Reverted to before the second question.
INSERT INTO message (id, session_id, data) VALUES
  ('msg_21', 'ses_2', '{"role":"user"}'),
  ('msg_22', 'ses_2', '{"role":"assistant","modelID":"m-1","finish":"stop"}'),
  ('msg_23', 'ses_2', '{"role":"user"}'),
  ('msg_24', 'ses_2', '{"role":"assistant","modelID":"m-1","finish":"stop"}');
INSERT INTO part (id, message_id, session_id, data) VALUES
  ('prt_21', 'msg_21', 'ses_2', '{"type":"text","text":"Hello"}'),
  ('prt_22', 'msg_22', 'ses_2', '{"type":"text","text":"Hello!"}'),
  ('prt_23', 'msg_23', 'ses_2', '{"type":"text","text":"Delete all"}'),
  ('prt_24', 'msg_24', 'ses_2', '{"type":"tool","callID":"c4","tool":"bash","state":{"status":"completed","input":{"command":"rm *"},"output":""}}');

-- A part that is no JSON, a part without message; ses_4 is empty.
INSERT INTO message (id, session_id, data) VALUES
  ('msg_31', 'ses_3', '{"role":"user"}'),
  ('msg_32', 'ses_3', '{"role":"assistant","modelID":"m-1","finish":"stop"}');
INSERT INTO part (id, message_id, session_id, data) VALUES
  ('prt_31', 'msg_31', 'ses_3', '{"type":"text","text":"Hello"}'),
  ('prt_32', 'msg_32', 'ses_3', '{"type":"te'),
  ('prt_33', 'msg_99', 'ses_3', '{"type":"tool","callID":"c9","tool":"bash","state":{"status":"completed","input":{"command":"who"},"output":"nobody"}}');

INSERT INTO event VALUES ('evt_1', 'ses_1', 1, 'message.part.updated.1', '{"part":{"type":"text"}}');
INSERT INTO session_message VALUES ('sm_1', 'ses_1', 'user', 1, '{}'), ('sm_2', 'ses_5', 'user', 1, '{}');
