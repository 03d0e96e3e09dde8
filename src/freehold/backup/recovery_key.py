"""Make, replace and try the recovery key of the backups of a home."""

import contextlib
from collections.abc import Callable

from freehold.backup.age import AgeIdentity, AgeRecipient
from freehold.backup.job import lock_job, read_place, read_section, record_event
from freehold.backup.keys import KeyStore, parse_recovery_key
from freehold.backup.place import open_store
from freehold.backup.recovery_state import RecoveryKeyState, read_recovery_state, write_recovery_state
from freehold.backup.repository import META, check_conditions, open_with_recovery_key, set_up_store
from freehold.errors import FreeholdError
from freehold.home import Home, ensure_private_folder


def make_recovery_key(home: Home, confirm: Callable[[str], str | None]) -> RecoveryKeyState:
    """Make a new key, show it, and try it against the store at once. The old one opens nothing any more.

    `confirm` shows the key and returns what the owner typed, or None when nobody can type. Raises `backup.bad-key` when
    that is not the key: then nothing has changed.
    """
    place = read_place(home, read_section(home))
    with lock_job(home), contextlib.closing(open_store(place)) as store:
        # No key is shown for a place that does not answer, takes nothing, or cannot keep two writers apart.
        store.read_clock()
        next(iter(store.list_objects(META)), None)
        check_conditions(store)
    recovery = AgeIdentity.generate()
    typed = confirm(recovery.reveal())
    given = recovery if typed is None else parse_recovery_key(typed)
    if given.secret_bytes() != recovery.secret_bytes():
        raise FreeholdError(
            "backup.bad-key",
            "What was typed is not the recovery key that was shown",
            hint="Run freehold backup key again: it shows a new one",
        )
    state = use_recovery_key(home, recovery.recipient)
    return try_recovery_key(home, given) if typed is not None else state


def use_recovery_key(home: Home, recipient: AgeRecipient) -> RecoveryKeyState:
    """From now on the backups can be opened with the secret half of this key. Makes the repository when there is none."""
    place = read_place(home, read_section(home))
    ensure_private_folder(home.vault)
    with lock_job(home), contextlib.closing(open_store(place)) as store:
        set_up_store(store, KeyStore(home).make(), recipient)
    state = write_recovery_state(home, str(recipient), tried=False)
    record_event(home, "backup.key_made", {"recipient": str(recipient)})
    return state


def try_recovery_key(home: Home, recovery: AgeIdentity) -> RecoveryKeyState:
    """Open the repository with nothing but this key. Raises `backup.bad-key`."""
    expected = KeyStore(home).read()
    with contextlib.closing(open_store(read_place(home, read_section(home)), create=False)) as store:
        found = open_with_recovery_key(store, recovery).key
    if found.identity.secret_bytes() != expected.identity.secret_bytes():
        raise FreeholdError(
            "backup.bad-key",
            "This key opens the backup of another Freehold",
            hint="Check [backup] in freehold.toml",
        )
    known = read_recovery_state(home)
    made = known.made if known is not None else None
    return write_recovery_state(home, str(recovery.recipient), made=made, tried=True)
