"""The tables of the pods slot: grants, accesses, and writes that have begun. Documents are elsewhere.

A released step is never edited.
"""

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
    # Grants of single conversations.
    """
    CREATE TABLE pods_session_grant (
        number INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, agent TEXT NOT NULL, folder TEXT NOT NULL,
        mode TEXT NOT NULL, once INTEGER NOT NULL, granted REAL NOT NULL
    );
    CREATE INDEX pods_session_grant_session ON pods_session_grant (session, number);
    """,
    """
    CREATE TABLE pods_begun (
        caller TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, before TEXT NOT NULL, after TEXT, at REAL NOT NULL,
        PRIMARY KEY (caller, key)
    );
    CREATE INDEX pods_begun_at ON pods_begun (at);
    """,
)
