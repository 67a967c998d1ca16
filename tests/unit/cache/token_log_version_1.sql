-- A token log of version 1 as the program wrote it before version 2: a dump of that file.
PRAGMA application_id=1179669580;
PRAGMA user_version=1;
BEGIN TRANSACTION;
CREATE TABLE generations(
  row INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  created_ms INTEGER NOT NULL,
  key TEXT NOT NULL,
  prompt_hash TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  model TEXT NOT NULL,
  requested_model TEXT NOT NULL,
  provider TEXT NOT NULL,
  route TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  finish_reason TEXT NOT NULL,
  sample INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  queue_ms REAL,
  first_token_ms REAL,
  total_ms REAL,
  logprobs_status TEXT NOT NULL,
  min_margin REAL) STRICT;
INSERT INTO "generations" VALUES(1,'gen-000000000000000000000001',1764500001000,'body:0000000000000000000000000000000000000000000000000000000000000001','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','chat.completions','m1','asked','up','m*','fp_a','stop',1,10,3,0.25,1.5,99.75,'captured',4.99999988824129104614e-03);
INSERT INTO "generations" VALUES(2,'gen-000000000000000000000002',1764500002000,'body:0000000000000000000000000000000000000000000000000000000000000002','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','chat.completions','m1','asked','up','m*','fp_b','stop',2,20,3,0.25,1.5,99.75,'captured',9.99999977648258209228e-03);
INSERT INTO "generations" VALUES(3,'gen-000000000000000000000003',1764500003000,'body:0000000000000000000000000000000000000000000000000000000000000003','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','chat.completions','m2','asked','up','m*','','stop',3,30,3,0.25,1.5,99.75,'unavailable: the client did not ask for them',NULL);
CREATE TABLE tokens(
  generation INTEGER NOT NULL,  -- generations.row
  choice INTEGER NOT NULL,
  position INTEGER NOT NULL,
  id INTEGER,
  bytes BLOB NOT NULL,
  logprob REAL,                 -- NULL: NaN, which SQLite cannot hold
  margin REAL,
  top BLOB NOT NULL,            -- encode_alternatives()
  PRIMARY KEY(generation, choice, position)) STRICT, WITHOUT ROWID;
INSERT INTO "tokens" VALUES(1,0,0,42,X'F09F00FF',-1.00000001490116119384e-01,4.99999988824129104614e-03,X'012A000000CDCCCCBD04000000F09F00FF0000000000000080FF0100000062');
INSERT INTO "tokens" VALUES(1,0,1,NULL,X'20776F7264',-9e999,0.5,X'01F9FFFFFF000000BF0100000078');
INSERT INTO "tokens" VALUES(1,1,0,NULL,X'',NULL,NULL,X'');
INSERT INTO "tokens" VALUES(2,0,0,42,X'F09F00FF',-1.00000001490116119384e-01,9.99999977648258209228e-03,X'012A000000CDCCCCBD04000000F09F00FF0000000000000080FF0100000062');
INSERT INTO "tokens" VALUES(2,0,1,NULL,X'20776F7264',-9e999,0.5,X'01F9FFFFFF000000BF0100000078');
INSERT INTO "tokens" VALUES(2,1,0,NULL,X'',NULL,NULL,X'');
CREATE INDEX generations_by_time ON generations(created_ms);
CREATE INDEX generations_by_key ON generations(key) WHERE key <> '';
COMMIT;
