"""The tables of the memory slot. A released step is never edited: add another.

`memory_word` finds exact words and `memory_vector` meanings, both made from the entries. In SQLite each change of a
vector has a number, by which the index in memory follows; PostgreSQL searches vectors itself.
"""

from freehold.slots.answers import answers_table

_ENTRIES = """
    CREATE TABLE memory_entry (
        id TEXT PRIMARY KEY, namespace TEXT NOT NULL, body TEXT NOT NULL, search TEXT NOT NULL,
        origin TEXT NOT NULL, session TEXT, turn INTEGER, note TEXT,
        created DOUBLE PRECISION NOT NULL, created_by TEXT NOT NULL, updated DOUBLE PRECISION NOT NULL,
        expires DOUBLE PRECISION, pinned INTEGER NOT NULL, used INTEGER NOT NULL, last_used DOUBLE PRECISION,
        version INTEGER NOT NULL, embedded TEXT NOT NULL
    );
    CREATE INDEX memory_entry_order ON memory_entry (updated, id);
    CREATE INDEX memory_entry_namespace ON memory_entry (namespace, updated, id);
    CREATE INDEX memory_entry_pinned ON memory_entry (pinned, updated, id);
    CREATE INDEX memory_entry_expires ON memory_entry (expires);
    CREATE INDEX memory_entry_embedded ON memory_entry (embedded, id);
    CREATE TABLE memory_word (term TEXT NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (term, entry));
    CREATE INDEX memory_word_entry ON memory_word (entry);
    """

SQLITE_STEPS = (
    _ENTRIES
    + """
    CREATE TABLE memory_vector (
        entry TEXT NOT NULL, part INTEGER NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL, stamp INTEGER NOT NULL,
        PRIMARY KEY (entry, part)
    );
    CREATE INDEX memory_vector_stamp ON memory_vector (stamp);
    CREATE TABLE memory_gone (entry TEXT PRIMARY KEY, stamp INTEGER NOT NULL, at DOUBLE PRECISION NOT NULL);
    CREATE INDEX memory_gone_stamp ON memory_gone (stamp);
    CREATE TABLE memory_stamp (id INTEGER PRIMARY KEY, stamp INTEGER NOT NULL);
    """
    + answers_table("memory"),
    "INSERT INTO memory_stamp (id, stamp) VALUES (1, 0)",
)

POSTGRES_STEPS = (
    _ENTRIES
    + """
    CREATE TABLE memory_vector (
        entry TEXT NOT NULL, part INTEGER NOT NULL, model TEXT NOT NULL, vector vector NOT NULL,
        PRIMARY KEY (entry, part)
    );
    CREATE INDEX memory_vector_model ON memory_vector (model);
    """
    + answers_table("memory"),
)
