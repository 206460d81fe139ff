-- state.vscdb of Cursor.
CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB);
CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB);
INSERT INTO cursorDiskKV VALUES
  ('composerData:k1', '{"fullConversationHeadersOnly":[{"bubbleId":"b1","type":1}]}'),
  ('bubbleId:k1:b1', '{"type":1,"text":"Hello"}'),
  ('inlineDiffs-1', '{}');
