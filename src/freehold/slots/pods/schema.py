"""The tables of the pods slot: grants, and who reached what. Documents are elsewhere. A released step is never edited."""

from freehold.slots.answers import answers_table

STEPS = (
    """
    CREATE TABLE pods_grant (
        agent TEXT NOT NULL, folder TEXT NOT NULL, mode TEXT NOT NULL, granted REAL NOT NULL, PRIMARY KEY (agent, folder)
    );
    CREATE TABLE pods_access (
        number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, who TEXT NOT NULL, agent TEXT, act TEXT NOT NULL,
        path TEXT NOT NULL
    );
    CREATE INDEX pods_access_agent ON pods_access (agent, number);
    """
    + answers_table("pods"),
    "CREATE INDEX pods_access_same ON pods_access (who, path, act, at)",
)
