CREATE TABLE sessions (app_name TEXT, user_id TEXT, id TEXT, state TEXT);
CREATE TABLE events (id TEXT, app_name TEXT, user_id TEXT, session_id TEXT, invocation_id TEXT, timestamp TEXT, author TEXT, content TEXT, partial BOOLEAN);
INSERT INTO events VALUES ('2','shop','u','s1','i1','2026-01-01 00:00:02','root','{"parts": [{"text": "Hello."}], "role": "model"}',NULL);
INSERT INTO events VALUES ('1','shop','u','s1','i1','2026-01-01 00:00:01','user','{"parts": [{"text": "Hi"}], "role": "user"}',NULL);
INSERT INTO events VALUES ('3','shop','u','s2','i2','2026-01-01 00:00:03','user','{"parts": [{"text": "Weather?"}], "role": "user"}',NULL);
INSERT INTO events VALUES ('4','shop','u','s2','i2','2026-01-01 00:00:04','root','{"parts": [{"functionCall": {"id": "f", "name": "weather", "args": {}}}], "role": "model"}',NULL);
