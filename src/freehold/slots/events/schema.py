"""The tables of the events slot, beside its log. A released step is never edited: add another."""

from freehold.slots.answers import answers_table

STEPS = (
    """
    CREATE TABLE events_content (
        id TEXT PRIMARY KEY, type TEXT NOT NULL, subject TEXT, data TEXT NOT NULL, at REAL NOT NULL
    );
    CREATE INDEX events_content_at ON events_content (at);
    CREATE TABLE events_sink (
        name TEXT PRIMARY KEY, delivered INTEGER NOT NULL, dropped INTEGER NOT NULL, state TEXT NOT NULL,
        since REAL NOT NULL, error TEXT
    );
    CREATE TABLE events_dead (
        sequence INTEGER PRIMARY KEY, at REAL NOT NULL, error TEXT NOT NULL, event TEXT NOT NULL, again INTEGER NOT NULL
    );
    """
    + answers_table("events"),
)
