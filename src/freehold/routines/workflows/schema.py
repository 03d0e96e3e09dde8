"""The tables of workflows. A released step is never edited: add another."""

SCHEMA = (
    # `source` is the text that runs, null before it has begun. `pinned`: only a file with this digest may run. `size`
    # counts the characters of what its steps were given and of their results. A step's `place` is its number: 3, or 3.2.1 in a gather.
    # `wake` is when a step that waits goes on by itself; `after` is the event that it has seen last. `spent` is what
    # the steps have cost that were thrown away for a retry.
    """
    CREATE TABLE workflows_workflow (
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, file TEXT NOT NULL, digest TEXT, pinned INTEGER NOT NULL,
        source TEXT, data TEXT NOT NULL, who TEXT NOT NULL, run TEXT, budget REAL, asks TEXT NOT NULL, state TEXT NOT NULL,
        size INTEGER NOT NULL DEFAULT 0, spent REAL NOT NULL DEFAULT 0,
        created REAL NOT NULL, started REAL, finished REAL, cost REAL, result TEXT, error TEXT, output TEXT
    );
    CREATE INDEX workflows_workflow_open ON workflows_workflow (state) WHERE finished IS NULL;
    CREATE INDEX workflows_workflow_run ON workflows_workflow (run) WHERE run IS NOT NULL;
    CREATE TABLE workflows_step (
        number INTEGER PRIMARY KEY AUTOINCREMENT, workflow TEXT NOT NULL, place TEXT NOT NULL, kind TEXT NOT NULL,
        title TEXT NOT NULL, digest TEXT NOT NULL, given TEXT NOT NULL, state TEXT NOT NULL, attempt INTEGER NOT NULL,
        begun REAL NOT NULL, finished REAL, wake REAL, after INTEGER, session TEXT, turn INTEGER, cost REAL,
        entry INTEGER, result TEXT, error TEXT,
        UNIQUE (workflow, place)
    );
    CREATE INDEX workflows_step_wake ON workflows_step (wake) WHERE wake IS NOT NULL AND state = 'waiting';
    CREATE INDEX workflows_step_session ON workflows_step (session) WHERE session IS NOT NULL;
    CREATE INDEX workflows_step_open ON workflows_step (workflow) WHERE state IN ('begun', 'waiting');
    CREATE INDEX workflows_step_event ON workflows_step (after) WHERE kind = 'event' AND state = 'waiting';
    CREATE TABLE workflows_signal (
        number INTEGER PRIMARY KEY AUTOINCREMENT, workflow TEXT NOT NULL, name TEXT NOT NULL, data TEXT NOT NULL
    );
    CREATE INDEX workflows_signal_workflow ON workflows_signal (workflow);
    """,
    # `holder` is the one time that the file runs for which it was claimed, or the step begun. `workflows_told` is how
    # many events of a journal elsewhere are in this timeline.
    """
    ALTER TABLE workflows_workflow ADD COLUMN holder TEXT;
    ALTER TABLE workflows_step ADD COLUMN holder TEXT;
    CREATE TABLE workflows_told (journal TEXT PRIMARY KEY, told INTEGER NOT NULL);
    """,
)

POSTGRES_SCHEMA = (
    # The same tables in a database of the owner. `workflows_event` has what is to be told to the timeline, and
    # `workflows_journal` the one name by which a timeline knows this journal.
    """
    CREATE TABLE workflows_workflow (
        number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE, file TEXT NOT NULL, digest TEXT,
        pinned INTEGER NOT NULL, source TEXT, data TEXT NOT NULL, who TEXT NOT NULL, run TEXT, budget DOUBLE PRECISION,
        asks TEXT NOT NULL, state TEXT NOT NULL, size BIGINT NOT NULL DEFAULT 0,
        spent DOUBLE PRECISION NOT NULL DEFAULT 0, created DOUBLE PRECISION NOT NULL, started DOUBLE PRECISION,
        finished DOUBLE PRECISION, cost DOUBLE PRECISION, result TEXT, error TEXT, output TEXT, holder TEXT
    );
    CREATE INDEX workflows_workflow_open ON workflows_workflow (state) WHERE finished IS NULL;
    CREATE INDEX workflows_workflow_run ON workflows_workflow (run) WHERE run IS NOT NULL;
    CREATE TABLE workflows_step (
        number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, workflow TEXT NOT NULL, place TEXT NOT NULL,
        kind TEXT NOT NULL, title TEXT NOT NULL, digest TEXT NOT NULL, given TEXT NOT NULL, state TEXT NOT NULL,
        attempt INTEGER NOT NULL, begun DOUBLE PRECISION NOT NULL, finished DOUBLE PRECISION, wake DOUBLE PRECISION,
        after BIGINT, session TEXT, turn BIGINT, cost DOUBLE PRECISION, entry BIGINT, result TEXT, error TEXT,
        holder TEXT, UNIQUE (workflow, place)
    );
    CREATE INDEX workflows_step_wake ON workflows_step (wake) WHERE wake IS NOT NULL AND state = 'waiting';
    CREATE INDEX workflows_step_session ON workflows_step (session) WHERE session IS NOT NULL;
    CREATE INDEX workflows_step_open ON workflows_step (workflow) WHERE state IN ('begun', 'waiting');
    CREATE INDEX workflows_step_event ON workflows_step (after) WHERE kind = 'event' AND state = 'waiting';
    CREATE TABLE workflows_signal (
        number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, workflow TEXT NOT NULL, name TEXT NOT NULL,
        data TEXT NOT NULL
    );
    CREATE INDEX workflows_signal_workflow ON workflows_signal (workflow);
    CREATE TABLE workflows_event (
        number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind TEXT NOT NULL, who TEXT NOT NULL, data TEXT NOT NULL
    );
    CREATE TABLE workflows_journal (name TEXT PRIMARY KEY);
    """,
)
