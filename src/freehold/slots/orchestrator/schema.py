"""The tables of the orchestrator slot. A released step is never edited: add another."""

from freehold.slots.answers import answers_table

STEPS = (
    """
    CREATE TABLE orchestrator_run (
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, session TEXT NOT NULL UNIQUE,
        agent TEXT NOT NULL, title TEXT NOT NULL, state TEXT NOT NULL, parent TEXT, depth INTEGER NOT NULL, folder TEXT,
        budget REAL, cost REAL, created REAL NOT NULL, finished REAL, error TEXT, added INTEGER NOT NULL DEFAULT 0,
        changed INTEGER NOT NULL DEFAULT 0, removed INTEGER NOT NULL DEFAULT 0, outcome TEXT NOT NULL,
        note TEXT
    );
    CREATE INDEX orchestrator_run_parent ON orchestrator_run (parent, number);
    CREATE INDEX orchestrator_run_state ON orchestrator_run (state);
    """
    + answers_table("orchestrator"),
    # Runs at another Freehold, which knows one caller only: whose they are is known here.
    """
    CREATE TABLE orchestrator_far_run (
        number INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT NOT NULL, id TEXT NOT NULL, parent TEXT,
        depth INTEGER NOT NULL, key TEXT, finished REAL, UNIQUE (place, id)
    );
    CREATE INDEX orchestrator_far_run_parent ON orchestrator_far_run (place, parent, number);
    """,
    # What a run may do, and who wanted it. Those of before may do everything, and are the owner's or their session's.
    """
    ALTER TABLE orchestrator_run ADD COLUMN permissions TEXT NOT NULL
        DEFAULT 'ask,network,pods,memory,beads,events,history,runs';
    ALTER TABLE orchestrator_run ADD COLUMN began_by TEXT NOT NULL DEFAULT 'owner';
    UPDATE orchestrator_run SET began_by = 'session:' || parent WHERE parent IS NOT NULL;
    ALTER TABLE orchestrator_far_run ADD COLUMN began_by TEXT NOT NULL DEFAULT 'owner';
    UPDATE orchestrator_far_run SET began_by = 'session:' || parent WHERE parent IS NOT NULL;
    ALTER TABLE orchestrator_far_run ADD COLUMN cost REAL;
    """,
    # Whether the process that ran it died meanwhile.
    "ALTER TABLE orchestrator_run ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;",
    # The entry of history that has the state that its folder was copied from.
    "ALTER TABLE orchestrator_run ADD COLUMN entry INTEGER;",
)
