CREATE TABLE trajectory_meta (trajectory_id text, cascade_id text, trajectory_type integer, source integer, PRIMARY KEY (trajectory_id));
CREATE TABLE steps (idx integer, step_type integer NOT NULL DEFAULT 0, status integer NOT NULL DEFAULT 0, step_payload blob, PRIMARY KEY (idx));
CREATE TABLE gen_metadata (idx integer, data blob, size integer NOT NULL DEFAULT 0, PRIMARY KEY (idx));
INSERT INTO trajectory_meta VALUES ('t', 'stripped', 4, 17);
INSERT INTO steps VALUES (0, 14, 3, X'');
INSERT INTO gen_metadata VALUES (0, X'1201022204657865630a354a063a041a0261619a011267656d696e692d70726f2d64656661756c74aa011547656d696e6920332e312050726f20284869676829', 64);
