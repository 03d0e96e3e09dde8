BEGIN TRANSACTION;
CREATE TABLE event (
  seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, who TEXT NOT NULL,
  data TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL
) STRICT;
INSERT INTO "event" VALUES(1,'2026-11-15T06:28:18.375Z','keeper.started','freehold','{"version":"0.1.0"}','0000000000000000000000000000000000000000000000000000000000000000','5367d173cc4468d716697e72f915abe2d4f5ac040c4c2df28b284e33b549a93b');
INSERT INTO "event" VALUES(2,'2026-11-15T06:28:18.375Z','egress.asked','agent:claude','{"host":"ex\u00e4mple.org","n":[1,2.5,null]}','5367d173cc4468d716697e72f915abe2d4f5ac040c4c2df28b284e33b549a93b','6cbb093e61800a3c17d0c1f1dc77a0631db16e39be1304f4b7138ec022508b63');
INSERT INTO "event" VALUES(3,'2026-11-15T06:28:18.376Z','keeper.stopped','owner','{}','6cbb093e61800a3c17d0c1f1dc77a0631db16e39be1304f4b7138ec022508b63','c3eea1e5b4a1352c9df378fd558c3adfae51dc25b97bd372f0bceffeae24ac9f');
CREATE TABLE head (only INTEGER PRIMARY KEY CHECK (only = 1), seq INTEGER NOT NULL, hash TEXT NOT NULL) STRICT;
INSERT INTO "head" VALUES(1,3,'c3eea1e5b4a1352c9df378fd558c3adfae51dc25b97bd372f0bceffeae24ac9f');
CREATE TABLE room (name TEXT PRIMARY KEY, steps INTEGER NOT NULL) STRICT;
CREATE INDEX event_kind ON event (kind, seq);
CREATE TRIGGER event_follows BEFORE INSERT ON event
  WHEN NEW.seq IS NOT (SELECT seq + 1 FROM head) OR NEW.previous IS NOT (SELECT hash FROM head)
  BEGIN SELECT RAISE(ABORT, 'an event must follow the last one'); END;
CREATE TRIGGER event_stays_same BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'the timeline is append-only'); END;
CREATE TRIGGER event_stays BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'the timeline is append-only'); END;
CREATE TRIGGER head_advances BEFORE UPDATE ON head
  WHEN NEW.seq IS NOT OLD.seq + 1 BEGIN SELECT RAISE(ABORT, 'the timeline is append-only'); END;
CREATE TRIGGER head_stays BEFORE DELETE ON head BEGIN SELECT RAISE(ABORT, 'the timeline is append-only'); END;
COMMIT;
PRAGMA application_id = 1179143236;
PRAGMA user_version = 1;
