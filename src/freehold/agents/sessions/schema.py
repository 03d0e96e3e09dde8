"""The tables of sessions. Never change a step that was released: add another one."""

SCHEMA = (
    """
    CREATE TABLE agents_session (
        id TEXT PRIMARY KEY, title TEXT NOT NULL, named INTEGER NOT NULL, agent TEXT NOT NULL, model TEXT,
        status TEXT NOT NULL, created TEXT NOT NULL, updated TEXT NOT NULL, archived INTEGER NOT NULL DEFAULT 0,
        cost REAL, acp TEXT, seq INTEGER NOT NULL DEFAULT 0, turns INTEGER NOT NULL DEFAULT 0,
        chosen TEXT NOT NULL DEFAULT '{}', parent TEXT
    );
    CREATE INDEX agents_session_updated ON agents_session (updated, id);
    CREATE TABLE agents_event (
        session TEXT NOT NULL REFERENCES agents_session (id) ON DELETE CASCADE, seq INTEGER NOT NULL, at TEXT NOT NULL,
        turn INTEGER, kind TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY (session, seq)
    ) WITHOUT ROWID;
    CREATE TABLE agents_turn (
        session TEXT NOT NULL REFERENCES agents_session (id) ON DELETE CASCADE, turn INTEGER NOT NULL,
        key TEXT NOT NULL, prompt TEXT NOT NULL, state TEXT NOT NULL, place REAL NOT NULL, entry INTEGER,
        PRIMARY KEY (session, turn), UNIQUE (session, key)
    ) WITHOUT ROWID;
    CREATE TABLE agents_approval (
        id TEXT PRIMARY KEY, session TEXT NOT NULL REFERENCES agents_session (id) ON DELETE CASCADE,
        turn INTEGER, at TEXT NOT NULL, digest TEXT NOT NULL, data TEXT NOT NULL, state TEXT NOT NULL,
        answer TEXT, live INTEGER NOT NULL
    );
    CREATE INDEX agents_approval_state ON agents_approval (state);
    CREATE TABLE agents_rule (
        id INTEGER PRIMARY KEY, effect TEXT NOT NULL, kind TEXT NOT NULL, pattern TEXT NOT NULL, exact INTEGER NOT NULL,
        session TEXT, at TEXT NOT NULL, UNIQUE (effect, kind, pattern, exact, session)
    );
    """,
    """
    ALTER TABLE agents_session ADD COLUMN news INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE agents_session ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
    """,
    "ALTER TABLE agents_approval ADD COLUMN note TEXT",
    """
    CREATE TABLE agents_image (
        session TEXT NOT NULL REFERENCES agents_session (id) ON DELETE CASCADE, turn INTEGER NOT NULL,
        place INTEGER NOT NULL, mime TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (session, turn, place)
    );
    """,
    """
    ALTER TABLE agents_session ADD COLUMN mode TEXT;
    ALTER TABLE agents_session ADD COLUMN asks INTEGER;
    """,
    # See `search_index`. Sessions from before are added to the index while Freehold runs.
    """
    ALTER TABLE agents_session ADD COLUMN number INTEGER;
    UPDATE agents_session SET number = rowid;
    CREATE UNIQUE INDEX agents_session_number ON agents_session (number);
    CREATE VIRTUAL TABLE agents_search USING fts5 (
        text, content = '', columnsize = 0, tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co So'"
    );
    CREATE TABLE agents_search_fill (
        session TEXT PRIMARY KEY REFERENCES agents_session (id) ON DELETE CASCADE, next INTEGER NOT NULL
    ) WITHOUT ROWID;
    INSERT INTO agents_search_fill SELECT id, 0 FROM agents_session WHERE seq > 0;
    """,
    # Which turns were sent or wait is asked at every start, and almost all turns of a long life have ended.
    """
    CREATE INDEX agents_turn_sent ON agents_turn (session, turn) WHERE state = 'sent';
    CREATE INDEX agents_turn_queued ON agents_turn (session, place) WHERE state = 'queued';
    """,
    # The index takes only the begin of a long message: it is built anew.
    """
    INSERT INTO agents_search (agents_search) VALUES ('delete-all');
    INSERT OR REPLACE INTO agents_search_fill SELECT id, 0 FROM agents_session WHERE seq > 0;
    """,
    # Sessions of runs, whose agents work in a computer of their own and never in `main`.
    """
    ALTER TABLE agents_session ADD COLUMN of_run INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX agents_session_of_run ON agents_session (id) WHERE of_run = 1;
    """,
    # Where the agent works: a folder below the workspace, or empty for the workspace itself.
    "ALTER TABLE agents_session ADD COLUMN folder TEXT NOT NULL DEFAULT ''",
    # See `unfinished_store`.
    """
    CREATE TABLE agents_unfinished (
        session TEXT NOT NULL REFERENCES agents_session (id) ON DELETE CASCADE, number INTEGER NOT NULL,
        at INTEGER NOT NULL, turn INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (session, number, at)
    ) WITHOUT ROWID;
    """,
)
