"""What this machine knows of the recovery key. Light to import: every process of Freehold may ask."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from freehold.home import Home
from freehold.private_file import replace_private_file

KEY_FILE = "backup.key"
_STATE_FILE = "backup-recovery.json"


@dataclass(frozen=True)
class RecoveryKeyState:
    """The public half of the recovery key. `tried` is when the owner last showed that he has the other half."""

    recipient: str
    made: str
    tried: str | None


def is_set_up(home: Home) -> bool:
    """Whether there are a repository key and a recovery key."""
    return (home.vault / KEY_FILE).exists() and (home.vault / _STATE_FILE).exists()


def read_recovery_state(home: Home) -> RecoveryKeyState | None:
    try:
        found = json.loads((home.vault / _STATE_FILE).read_bytes())
        return RecoveryKeyState(str(found["recipient"]), str(found["made"]), found.get("tried"))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_recovery_state(home: Home, recipient: str, *, made: str | None = None, tried: bool) -> RecoveryKeyState:
    """Without `made` the key is new."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    state = RecoveryKeyState(recipient, made or now, now if tried else None)
    replace_private_file(home.vault / _STATE_FILE, json.dumps(asdict(state)).encode() + b"\n")
    return state
