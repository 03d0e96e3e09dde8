"""Idempotency keys: a write that is sent again with its key gets the first answer and has no second effect."""

import hashlib
import json
from typing import Any

from freehold.slots.contract import MAX_KEY, Reply, SlotCaller, SlotName, SlotWrite
from freehold.slots.errors import SlotError
from freehold.slots.statement import Steps, ask, ask_one
from freehold.strict_json import decode, encode
from freehold.typed_call import result_type

KEPT_SECONDS = 7 * 86_400
"""How long an answer is kept for a repetition."""


def answers_table(slot: SlotName) -> str:
    """The SQL of the table that a slot keeps its answers in."""
    return f"""
        CREATE TABLE {slot}_answer (
            caller TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, reply TEXT NOT NULL,
            at DOUBLE PRECISION NOT NULL, PRIMARY KEY (caller, key)
        );
        CREATE INDEX {slot}_answer_at ON {slot}_answer (at);
    """


def answer_once(
    slot: SlotName, request: SlotWrite[Reply], caller: SlotCaller, steps: Steps[Reply], now: float
) -> Steps[tuple[Reply, bool]]:
    """The reply of a write, and whether it is a repetition. Runs in the transaction of the write.

    The row of the key is made first: a second writer with the same key waits for it and then finds the answer.
    """
    if request.key is None:
        return (yield from steps), False
    check_key(slot, request.key)
    table, digest = f"{slot}_answer", digest_request(request)
    # Not the answer for this key: who looked for it before has relied on it.
    yield from ask(
        f"DELETE FROM {table} WHERE at < ? AND NOT (caller = ? AND key = ?)",  # noqa: S608 - the name of a slot
        *(now - KEPT_SECONDS, caller.name, request.key),
    )
    made = yield from ask_one(
        f"INSERT INTO {table} (caller, key, digest, reply, at) VALUES (?, ?, ?, '', ?)"  # noqa: S608
        " ON CONFLICT DO NOTHING RETURNING key",
        caller.name,
        request.key,
        digest,
        now,
    )
    if made is None:
        steps.close()
        found = yield from ask_one(
            f"SELECT digest, reply FROM {table} WHERE caller = ? AND key = ?",  # noqa: S608
            caller.name,
            request.key,
        )
        return _stored_reply(slot, request, digest, found), True
    reply = yield from steps
    yield from ask(
        f"UPDATE {table} SET reply = ? WHERE caller = ? AND key = ?",  # noqa: S608
        json.dumps(encode(reply)),
        caller.name,
        request.key,
    )
    return reply, False


def expect_answer(slot: SlotName) -> Steps[Any]:
    """The steps of a write whose answer was found before. They run only if it was forgotten in between."""
    yield from ()
    raise SlotError(
        slot, "conflict", "The answer for this idempotency key is no longer kept", hint="Look whether it has happened"
    )


def check_key(slot: SlotName, key: str) -> None:
    if not 0 < len(key) <= MAX_KEY or not key.isprintable():
        raise SlotError(slot, "invalid", f"An idempotency key has 1 to {MAX_KEY} printable characters")


def _stored_reply(slot: SlotName, request: SlotWrite[Reply], digest: str, found: tuple[Any, ...] | None) -> Reply:
    if found is None or found[0] != digest:
        raise wrong_request(slot)
    reply: Reply = decode(result_type(type(request)), json.loads(found[1]))
    return reply


def wrong_request(slot: SlotName) -> SlotError:
    return SlotError(
        slot,
        "conflict",
        "This idempotency key was used for another request",
        hint="Use a new key for each request, and the same key only to repeat a request",
    )


def digest_request(request: SlotWrite[Any]) -> str:
    """The same for the same request."""
    text = json.dumps([type(request).method, encode(request)], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
