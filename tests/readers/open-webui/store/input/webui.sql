CREATE TABLE chat (id VARCHAR PRIMARY KEY, user_id VARCHAR, title TEXT, chat JSON, created_at INT, updated_at INT);
INSERT INTO chat VALUES ('c1', 'u', 'Hi', '{"models": ["m-1"], "history": {"messages": {"u": {"id": "u", "parentId": null, "childrenIds": [], "role": "user", "content": "Hi", "timestamp": 1700000000}, "a": {"id": "a", "parentId": "u", "childrenIds": [], "role": "assistant", "content": "Hello.", "timestamp": 1700000000, "done": true}}, "currentId": "a"}}', 1, 2);
INSERT INTO chat VALUES ('c2', 'u', 'broken', '{"history": ', 1, 2);
