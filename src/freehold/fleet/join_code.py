"""The one-time code with which a machine joins a fleet: where the head is, how it is recognised, and a secret."""

import contextlib
import re
from dataclasses import dataclass
from ipaddress import ip_address

from freehold.errors import FreeholdError

LIFETIME = 15 * 60
_CODE = re.compile(
    r"(?P<host>[0-9a-fA-F.:\[\]]{2,50}):(?P<port>[0-9]{1,5})/(?P<head>[0-9a-f]{32})/(?P<secret>[0-9a-f]{32})"
)


@dataclass(frozen=True)
class JoinCode:
    """`head` is the fingerprint of the head's certificate. `secret` is good for one node, for 15 minutes."""

    host: str
    port: int
    head: str
    secret: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}/{self.head}/{self.secret}"


def read_join_code(words: str) -> JoinCode:
    """Raises `fleet.bad-value`."""
    found = _CODE.fullmatch(words.strip())
    with contextlib.suppress(ValueError):
        if found is not None:
            host = str(ip_address(found["host"].strip("[]")))
            return JoinCode(host, int(found["port"]), found["head"], found["secret"])
    raise FreeholdError(
        "fleet.bad-value", "That is not a code to join a fleet", hint="freehold fleet up, on the head, shows one"
    )
