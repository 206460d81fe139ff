CREATE TABLE mastra_messages (id TEXT, thread_id TEXT, content TEXT, role TEXT, type TEXT, createdAt TEXT, resourceId TEXT);
INSERT INTO mastra_messages VALUES ('2','t','{"format": 2, "parts": [{"type": "text", "text": "Hello."}]}','assistant','v2','2026-01-01T00:00:02Z','r');
INSERT INTO mastra_messages VALUES ('1','t','{"format": 2, "parts": [{"type": "text", "text": "Hi"}]}','user','v2','2026-01-01T00:00:01Z','r');
