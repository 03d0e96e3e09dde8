"""The tables of routines. A released step is never edited: add another."""

SCHEMA = (
    # `next` is when the routine is due by its schedule; null when it has none or is paused.
    # `cause` is what triggered a run: a time, the id of a request, the number of an event. One cause makes one run.
    """
    CREATE TABLE routines_routine (
        name TEXT PRIMARY KEY, spec TEXT NOT NULL, source TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
        reason TEXT, next REAL, zone TEXT NOT NULL, created REAL NOT NULL, failures INTEGER NOT NULL DEFAULT 0,
        session TEXT
    ) WITHOUT ROWID;
    CREATE INDEX routines_routine_next ON routines_routine (next) WHERE next IS NOT NULL;
    CREATE INDEX routines_routine_kind ON routines_routine (kind, state);
    CREATE TABLE routines_run (
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, routine TEXT NOT NULL, cause TEXT NOT NULL,
        due REAL NOT NULL, begin REAL NOT NULL, held INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL,
        attempt INTEGER NOT NULL DEFAULT 1, started REAL, finished REAL, session TEXT, turn INTEGER, cost REAL,
        quiet INTEGER NOT NULL DEFAULT 0, result TEXT, error TEXT, data TEXT NOT NULL, work TEXT,
        UNIQUE (routine, cause)
    );
    CREATE INDEX routines_run_routine ON routines_run (routine, number);
    CREATE INDEX routines_run_session ON routines_run (session) WHERE session IS NOT NULL;
    CREATE INDEX routines_run_due ON routines_run (begin) WHERE state = 'due';
    CREATE INDEX routines_run_open ON routines_run (routine) WHERE state IN ('started', 'parked');
    CREATE TABLE routines_position (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    """,
)
