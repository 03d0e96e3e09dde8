"""The full-text index of prompts and messages (SQLite FTS5), so that a search does not read every conversation.

The index stores no text of its own. The number of a row is the session's number and the event's, and to remove a row the
same text is given again: `_read_text` must give for a stored event what it gave before, or the index is built anew.

An event is in the index unless its session is in `agents_search_fill` with a `next` that is not after it: homes from
before the index are filled in slices while Freehold runs, and until then those sessions are read one by one.
"""

import asyncio
import json
import logging
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.rows import SessionEventRow
from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.timeline import Timeline, Transaction

log = logging.getLogger(__name__)

MAX_WORDS = 50
"""Words of a query after these are not searched. Of writing without spaces, every character is a word."""
MAX_INDEXED = 100_000
"""Characters of one prompt or message that can be found. While they are added, nothing else can be stored."""
FILL_ROWS = 100
SLICE_TEXT = 200_000
"""Characters after which a slice of the index ends: nothing else can be stored while it is written."""
FILL_PAUSE = 0.02
FILL_RETRY = 60.0

_KINDS = ("message", "turn.started")
_OF_KINDS = "kind IN ('message', 'turn.started')"
_TEXT = (
    "(coalesce(json_extract(e.data, '$.text'), json_extract(e.data, '$.prompt.text'), '') || ' ' || "
    "coalesce(json_extract(e.data, '$.prompt.files'), ''))"
)
_SEQ_BITS = 32
_MIN_PREFIX = 2
# Writing without spaces (Han, Kana), Hangul, and emoji: every character is a word, and words in a row are a phrase.
_ONE_BY_ONE = re.compile(
    "[\u2600-\u27bf\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U0001f000-\U0001faff\U00020000-\U0003134f]"
)
_WORD_CATEGORIES = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Co", "So"})
"""The characters that are part of a word for the tokenizer in `schema`."""


def index_events(tx: Transaction, session: str, events: Iterable[SessionEventRow]) -> None:
    """Adds the prompts and messages among these new events of a session."""
    found = [(event.seq, _read_text(event.data)) for event in events if event.kind in _KINDS]
    if not found:
        return
    number, filled = _find_place(tx, session)
    if filled is None:
        _insert(tx, number, found)


def index_later(tx: Transaction, session: str) -> None:
    """For a session with events of which none is in the index. `fill_slice` adds them; until then they are read."""
    tx.execute("INSERT OR REPLACE INTO agents_search_fill VALUES (?, 0)", (session,))


def remove_index_slice(timeline: Timeline, session: str) -> bool:
    """Takes the newest events of a session out of the index, and returns whether there may be more.

    Call it again and again before the session is deleted. When the process is killed in between, they are added again.
    """
    with timeline.transaction() as tx:
        number, filled = _find_place(tx, session)
        rows = tx.execute(
            f"SELECT seq, data FROM agents_event WHERE session = ? AND {_OF_KINDS} AND seq < ? ORDER BY seq DESC LIMIT ?",  # noqa: S608 - our own words
            (session, 2**62 if filled is None else filled, FILL_ROWS),
        ).fetchall()
        some = _cut_slice([(seq, _read_text(json.loads(data))) for seq, data in rows])
        if some:
            _remove(tx, number, some)
            tx.execute("INSERT OR REPLACE INTO agents_search_fill VALUES (?, ?)", (session, some[-1][0]))
    return bool(some)


def remove_indexed_events(tx: Transaction, session: str, *, from_turn: int = 0) -> None:
    """Call it before the events of these turns are deleted. With `from_turn` 0, all events of the session."""
    number, filled = _find_place(tx, session)
    rows = tx.execute(
        f"SELECT seq, data FROM agents_event WHERE session = ? AND {_OF_KINDS} AND (? = 0 OR turn >= ?) AND seq < ?",  # noqa: S608 - our own words
        (session, from_turn, from_turn, 2**62 if filled is None else filled),
    ).fetchall()
    _remove(tx, number, [(seq, _read_text(json.loads(data))) for seq, data in rows])
    if not from_turn:
        tx.execute("DELETE FROM agents_search_fill WHERE session = ?", (session,))


def make_condition(query: str) -> tuple[str, list[Any]]:
    """SQL for the sessions in which one prompt or message has every word of the query, and its parameters.

    Nothing in the query is syntax. The last word may be the beginning of a longer one.
    """
    words = _limit_words([word for word in query.split() if _has_letters(word)])
    if not words:
        return "0", []
    terms = ['"' + _prepare(word).replace('"', '""') + '"' for word in words]
    if sum(map(_is_word_character, words[-1])) >= _MIN_PREFIX:
        terms[-1] += "*"
    likes = " AND ".join([f"{_TEXT} LIKE ? ESCAPE '\\'"] * len(words))
    sql = (
        f"(number IN (SELECT DISTINCT rowid >> {_SEQ_BITS} FROM agents_search WHERE agents_search MATCH ?) "  # noqa: S608 - likewise
        "OR (id IN (SELECT session FROM agents_search_fill) AND EXISTS (SELECT 1 FROM agents_event e "
        f"WHERE e.session = agents_session.id AND {_OF_KINDS} AND {likes})))"
    )
    return sql, [" ".join(terms), *map(make_like_pattern, words)]


def _limit_words(words: Sequence[str]) -> list[str]:
    """At most `MAX_WORDS` of the index. A long phrase costs as much as its words, at every place of its first one."""
    found: list[str] = []
    left = MAX_WORDS
    for word in words:
        parts = _prepare(word).split()
        if left <= 0:
            break
        found.append(word if len(parts) <= left else "".join(parts[:left]))
        left -= len(parts)
    return found


def make_like_pattern(text: str) -> str:
    """A pattern for `LIKE … ESCAPE '\\'` that finds this text anywhere."""
    plain = _replace_surrogates(text)
    return "%" + plain.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"


async def fill_search_index(timeline: Timeline) -> None:
    """Adds the events of a home that was made before the index, a slice at a time. Returns when all are in it."""
    while True:
        try:
            if not await run_blocking(fill_slice, timeline):
                return
        except FreeholdError as error:
            log.warning("old conversations cannot be added to the search index now: %s", error)
            await asyncio.sleep(FILL_RETRY)
        await asyncio.sleep(FILL_PAUSE)


def fill_slice(timeline: Timeline) -> bool:
    """Adds the next slice, and returns whether there may be more. What was added stays when the process is killed."""
    if not timeline.query("SELECT 1 FROM agents_search_fill LIMIT 1"):
        return False
    with timeline.transaction() as tx:
        row = tx.execute("SELECT session, next FROM agents_search_fill LIMIT 1").fetchone()
        if row is None:
            return False
        session, first = row
        number, _ = _find_place(tx, session)
        stored = _read_stored(tx, session, first, FILL_ROWS)
        found = _cut_slice(stored)
        _insert(tx, number, found)
        if len(found) == len(stored) < FILL_ROWS:
            tx.execute("DELETE FROM agents_search_fill WHERE session = ?", (session,))
        else:
            tx.execute("UPDATE agents_search_fill SET next = ? WHERE session = ?", (found[-1][0] + 1, session))
    return True


def _find_place(tx: Transaction, session: str) -> tuple[int, int | None]:
    """The session's number, and the first event that is not in the index while the session is being filled."""
    row = tx.execute(
        "SELECT number, (SELECT next FROM agents_search_fill WHERE session = id) FROM agents_session WHERE id = ?",
        (session,),
    ).fetchone()
    if row is None:
        raise FreeholdError("session.not-found", "The session was deleted")
    return row[0], row[1]


def _read_stored(tx: Transaction, session: str, first: int, limit: int) -> list[tuple[int, str]]:
    rows = tx.execute(
        f"SELECT seq, data FROM agents_event WHERE session = ? AND seq >= ? AND {_OF_KINDS} ORDER BY seq LIMIT ?",  # noqa: S608 - our own words
        (session, first, limit),
    )
    return [(seq, _read_text(json.loads(data))) for seq, data in rows]


def _cut_slice(found: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """As many as one slice takes, and at least one."""
    some: list[tuple[int, str]] = []
    left = SLICE_TEXT
    for one in found:
        if some and left <= 0:
            break
        some.append(one)
        left -= len(one[1])
    return some


def _remove(tx: Transaction, number: int, found: Sequence[tuple[int, str]]) -> None:
    for seq, text in found:
        tx.execute(
            "INSERT INTO agents_search (agents_search, rowid, text) VALUES ('delete', ?, ?)",
            (number << _SEQ_BITS | seq, text),
        )


def _insert(tx: Transaction, number: int, found: Sequence[tuple[int, str]]) -> None:
    for seq, text in found:
        tx.execute("INSERT INTO agents_search (rowid, text) VALUES (?, ?)", (number << _SEQ_BITS | seq, text))


def _read_text(data: Json) -> str:
    """What the owner or the agent wrote, and the names of files that came with a prompt."""
    prompt = data.get("prompt")
    if isinstance(prompt, dict):
        files = "\n".join(map(str, prompt.get("files") or ()))
        return _prepare(f"{str(prompt.get('text', ''))[:MAX_INDEXED]}\n{files[:MAX_INDEXED]}")
    return _prepare(str(data.get("text", ""))[:MAX_INDEXED])


def _prepare(text: str) -> str:
    plain = _replace_surrogates(text)
    return plain if plain.isascii() else _ONE_BY_ONE.sub(r" \g<0> ", plain)


def _replace_surrogates(text: str) -> str:
    """SQLite takes no half of a surrogate pair, which JSON allows, and ends an expression at a zero."""
    return text.encode(errors="replace").decode().replace("\0", " ")


def _has_letters(word: str) -> bool:
    return any(map(_is_word_character, word))


def _is_word_character(character: str) -> bool:
    return unicodedata.category(character) in _WORD_CATEGORIES
