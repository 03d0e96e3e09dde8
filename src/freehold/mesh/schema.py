"""The tables of the mesh, in the timeline's database: a change and its event are stored together."""

ROOM = "mesh"
STEPS = (
    """
    CREATE TABLE mesh_neighbour (
      pubkey TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, url TEXT, did TEXT, proof TEXT NOT NULL, grants TEXT NOT NULL,
      given TEXT NOT NULL, token TEXT NOT NULL, paired REAL NOT NULL, seen REAL
    ) STRICT;
    CREATE TABLE mesh_evicted (pubkey TEXT PRIMARY KEY, at REAL NOT NULL) STRICT;
    CREATE TABLE mesh_code (
      hash TEXT PRIMARY KEY, name TEXT, grants TEXT NOT NULL, created REAL NOT NULL, expires REAL NOT NULL
    ) STRICT;
    CREATE TABLE mesh_relay (
      url TEXT PRIMARY KEY, state TEXT NOT NULL, error TEXT, since REAL NOT NULL, seen REAL, last INTEGER
    ) STRICT;
    CREATE TABLE mesh_outbox (
      id TEXT NOT NULL, relay TEXT NOT NULL, event TEXT NOT NULL, added REAL NOT NULL, PRIMARY KEY (relay, id)
    ) STRICT;
    CREATE TABLE mesh_message (
      id TEXT PRIMARY KEY, pubkey TEXT NOT NULL, at INTEGER NOT NULL, received REAL NOT NULL, kind TEXT NOT NULL,
      content TEXT NOT NULL
    ) STRICT;
    CREATE TABLE mesh_client (
      pubkey TEXT PRIMARY KEY, session TEXT NOT NULL, registered REAL NOT NULL, heard REAL NOT NULL, facts TEXT NOT NULL
    ) STRICT;
    CREATE TABLE mesh_registration (
      host TEXT PRIMARY KEY, state TEXT NOT NULL, error TEXT, since REAL NOT NULL, session TEXT, slots TEXT NOT NULL
    ) STRICT;
    CREATE TABLE mesh_sent_work (
      id TEXT PRIMARY KEY, neighbour TEXT NOT NULL, title TEXT NOT NULL, prompt TEXT NOT NULL, state TEXT NOT NULL,
      error TEXT, created REAL NOT NULL, finished REAL, cursor INTEGER NOT NULL, entry INTEGER, folder TEXT,
      digest TEXT
    ) STRICT;
    CREATE TABLE mesh_hosted_work (
      pubkey TEXT NOT NULL, id TEXT NOT NULL, run TEXT NOT NULL, created REAL NOT NULL, PRIMARY KEY (pubkey, id)
    ) STRICT;
    """,
    # What the orchestrator slot asks for and shows of work at a neighbour.
    """
    ALTER TABLE mesh_sent_work ADD COLUMN agent TEXT;
    ALTER TABLE mesh_sent_work ADD COLUMN cost REAL;
    ALTER TABLE mesh_sent_work ADD COLUMN budget REAL;
    ALTER TABLE mesh_sent_work ADD COLUMN permissions TEXT;
    ALTER TABLE mesh_sent_work ADD COLUMN files INTEGER NOT NULL DEFAULT 0;
    """,
)
