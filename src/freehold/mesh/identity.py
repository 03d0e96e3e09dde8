"""The key pair of this Freehold, kept in the vault, and the statement that binds it to the owner's DID."""

import json
from dataclasses import dataclass

from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.identity.atproto.syntax import is_did
from freehold.mesh.neighbours import slug
from freehold.mesh.nostr.event import BadEvent, NostrEvent, read_event, sign_event
from freehold.mesh.nostr.keys import NostrKey, make_key, read_secret_key

SECRET_NAME = "mesh.key"  # noqa: S105 - a name
STATEMENT = 30_078
"""Data of an application, one for each `d` (NIP-78)."""
STATEMENT_NAME = "freehold:owner"


def load_key(vault: Vault) -> NostrKey:
    """The key of this Freehold, made at the first use. Blocks."""
    try:
        return read_secret_key(vault.get(SECRET_NAME).reveal())
    except FreeholdError as error:
        if error.code != "secret.not-found":
            raise
    key = make_key()
    vault.set(SECRET_NAME, key.export())
    return key


def find_key(vault: Vault) -> NostrKey | None:
    """The key, if there is one. Blocks."""
    return read_secret_key(vault.get(SECRET_NAME).reveal()) if has_key(vault) else None


def has_key(vault: Vault) -> bool:
    return any(one.name == SECRET_NAME for one in vault.list())


def replace_key(vault: Vault, text: str | None) -> NostrKey:
    """Stores the given secret key, or a new one. Blocks. Raises `mesh.bad-key`."""
    key = make_key() if text is None else read_secret_key(text)
    vault.set(SECRET_NAME, key.export())
    return key


@dataclass(frozen=True)
class OwnerStatement:
    """What a key says about its Freehold. That the DID agrees is another question: see `did_proof`.

    `name` is one that a neighbour can have. `url` is where its Freehold is reached, if it says that.
    """

    pubkey: str
    name: str
    did: str | None
    url: str | None = None


def sign_statement(
    key: NostrKey, name: str, did: str | None, challenge: str = "", url: str | None = None
) -> NostrEvent:
    """`challenge` is what the receiver chose, so that an old statement cannot be sent again. With `url`, nobody else can
    show the statement at an address of theirs."""
    more = [["i", did]] if did else []
    tags = [["d", STATEMENT_NAME], ["challenge", challenge], *more, *([["u", url]] if url else [])]
    return sign_event(key, STATEMENT, json.dumps({"name": name, "did": did}), tags)


def read_statement(value: object, challenge: str = "") -> OwnerStatement:
    """Raises `mesh.bad-signature` for one that the key did not sign, or that is not a statement."""
    try:
        event = _read_statement_event(value, challenge)
        said = json.loads(event.content)
        name, did = said["name"], said["did"]
    except (BadEvent, ValueError, KeyError, TypeError, RecursionError) as error:
        raise FreeholdError("mesh.bad-signature", f"The statement of the neighbour cannot be used: {error}") from None
    if not isinstance(name, str) or not (did is None or (isinstance(did, str) and len(did) <= 2048 and is_did(did))):
        raise FreeholdError("mesh.bad-signature", "The statement of the neighbour has no valid name or DID")
    return OwnerStatement(event.pubkey, slug(name), did, event.tag("u"))


def _read_statement_event(value: object, challenge: str) -> NostrEvent:
    event = read_event(value)
    if not event.is_signed or event.kind != STATEMENT or event.tag("d") != STATEMENT_NAME:
        raise BadEvent("its key did not sign it")
    if (event.tag("challenge") or "") != challenge:
        raise BadEvent("it was made for somebody else")
    return event
