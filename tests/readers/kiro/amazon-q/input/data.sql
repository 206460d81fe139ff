CREATE TABLE conversations (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE history (id INTEGER PRIMARY KEY, command TEXT);
INSERT INTO conversations VALUES ('/w', '{"conversation_id": "q1", "latest_summary": ["Earlier: nothing"], "history": [{"user": {"content": {"Prompt": {"prompt": "Hi"}}, "env_context": {}}, "assistant": {"Response": {"message_id": "m", "content": "Hello."}}}, {"user": {"content": {"NewKind": {"text": "x"}}, "env_context": {}}, "assistant": {"Response": {"message_id": "n", "content": "Unknown."}}}]}');
