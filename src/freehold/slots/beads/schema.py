"""The tables of the beads slot, the same in SQLite and PostgreSQL. A released step is never edited: add another."""

from freehold.slots.answers import answers_table

STEPS = (
    """
    CREATE TABLE beads_item (
        id TEXT PRIMARY KEY, title TEXT NOT NULL, description TEXT NOT NULL, kind TEXT NOT NULL,
        priority INTEGER NOT NULL, status TEXT NOT NULL, holder TEXT, parent TEXT,
        created DOUBLE PRECISION NOT NULL, created_by TEXT NOT NULL, updated DOUBLE PRECISION NOT NULL,
        closed DOUBLE PRECISION, close_reason TEXT, evidence TEXT, version INTEGER NOT NULL, search TEXT NOT NULL,
        extra TEXT NOT NULL
    );
    CREATE INDEX beads_item_order ON beads_item (status, priority, created, id);
    CREATE INDEX beads_item_parent ON beads_item (parent);
    CREATE TABLE beads_label (item TEXT NOT NULL, label TEXT NOT NULL, PRIMARY KEY (item, label));
    CREATE INDEX beads_label_label ON beads_label (label);
    CREATE TABLE beads_link (
        item TEXT NOT NULL, other TEXT NOT NULL, kind TEXT NOT NULL, PRIMARY KEY (item, other, kind)
    );
    CREATE INDEX beads_link_other ON beads_link (other, kind);
    CREATE TABLE beads_comment (
        item TEXT NOT NULL, number INTEGER NOT NULL, at DOUBLE PRECISION NOT NULL, author TEXT NOT NULL,
        body TEXT NOT NULL, PRIMARY KEY (item, number)
    );
    CREATE TABLE beads_session (
        item TEXT NOT NULL, session TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, PRIMARY KEY (item, session)
    );
    CREATE INDEX beads_session_session ON beads_session (session);
    CREATE TABLE beads_change (
        item TEXT NOT NULL, version INTEGER NOT NULL, at DOUBLE PRECISION NOT NULL, who TEXT NOT NULL,
        action TEXT NOT NULL, fields TEXT NOT NULL, PRIMARY KEY (item, version)
    );
    """
    + answers_table("beads"),
    "CREATE INDEX beads_item_closed ON beads_item (status, (COALESCE(closed, updated)), id);",
)
