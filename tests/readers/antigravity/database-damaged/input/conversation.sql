CREATE TABLE trajectory_meta (trajectory_id text, cascade_id text, trajectory_type integer, source integer, PRIMARY KEY (trajectory_id));
CREATE TABLE steps (idx integer, step_type integer NOT NULL DEFAULT 0, status integer NOT NULL DEFAULT 0, step_payload blob, PRIMARY KEY (idx));
CREATE TABLE gen_metadata (idx integer, data blob, size integer NOT NULL DEFAULT 0, PRIMARY KEY (idx));
INSERT INTO trajectory_meta VALUES ('t', 'cascade-3', 4, 17);
INSERT INTO steps VALUES (0, 14, 3, NULL);
INSERT INTO steps VALUES (3, 15, 3, X'ffff');
INSERT INTO steps VALUES (4, 90, 3, X'ba064d0a4b54686520666f6c6c6f77696e6720697320616e203c455048454d4552414c5f4d4553534147453e206e6f742061637475616c6c792073656e742062792074686520757365722e0a4f6e652e');
INSERT INTO gen_metadata VALUES (0, X'1201032204657865630a354a063a041a0261619a011267656d696e692d70726f2d64656661756c74aa011547656d696e6920332e312050726f20284869676829', 64);
INSERT INTO gen_metadata VALUES (1, X'0aff', 2);
