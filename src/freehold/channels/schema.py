"""The tables of channels. A released step is never edited: add another."""

STEPS = (
    """
    CREATE TABLE channels_channel (
        name TEXT PRIMARY KEY, kind TEXT NOT NULL, settings TEXT NOT NULL, preferences TEXT NOT NULL,
        sender TEXT, chat TEXT, added REAL NOT NULL, paired REAL, cursor TEXT,
        state TEXT NOT NULL DEFAULT 'ok', since REAL NOT NULL, error TEXT,
        strangers INTEGER NOT NULL DEFAULT 0, dropped INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE channels_code (
        channel TEXT PRIMARY KEY REFERENCES channels_channel (name) ON DELETE CASCADE, digest BLOB NOT NULL,
        expires REAL NOT NULL, tries INTEGER NOT NULL, sender TEXT, chat TEXT
    );
    CREATE TABLE channels_message (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        channel TEXT NOT NULL REFERENCES channels_channel (name) ON DELETE CASCADE, key TEXT NOT NULL,
        tell TEXT NOT NULL, session TEXT, approval TEXT, digest TEXT, answerable INTEGER NOT NULL DEFAULT 0,
        subject TEXT NOT NULL, text TEXT NOT NULL, link TEXT NOT NULL, reply_to TEXT, at REAL NOT NULL, due REAL NOT NULL,
        state TEXT NOT NULL DEFAULT 'waiting', part_of INTEGER, remote TEXT, error TEXT, UNIQUE (channel, key)
    );
    CREATE INDEX channels_message_state ON channels_message (channel, state, due);
    CREATE INDEX channels_message_remote ON channels_message (channel, remote);
    CREATE TABLE channels_received (
        channel TEXT NOT NULL REFERENCES channels_channel (name) ON DELETE CASCADE, remote TEXT NOT NULL,
        number INTEGER NOT NULL, at REAL NOT NULL, state TEXT NOT NULL, message TEXT, session TEXT,
        PRIMARY KEY (channel, remote)
    ) WITHOUT ROWID;
    CREATE TABLE channels_subscription (
        id TEXT PRIMARY KEY, endpoint TEXT NOT NULL UNIQUE, p256dh TEXT NOT NULL, auth TEXT NOT NULL,
        label TEXT NOT NULL, added REAL NOT NULL
    );
    CREATE TABLE channels_position (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), seq INTEGER NOT NULL);
    """,
    # `refusal` is what the server said when it did not take a message, until it takes one.
    "ALTER TABLE channels_channel ADD COLUMN refusal TEXT;",
)
