"""Signed requests that begin a routine, as Standard Webhooks describes them."""

import base64
import binascii
import hmac
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from freehold.errors import FreeholdError

if TYPE_CHECKING:
    from freehold.egress.vault import Vault

MAX_BODY = 256 * 1024
TOLERANCE = 300.0
"""Seconds by which the time of a request may differ from ours."""
SECRET_BYTES = 32
MAX_SIGNATURES = 10
_ID = re.compile(r"[\x21-\x7e]{1,200}")
_SHIFTED = re.compile(r"\.[0-9]{9,}(?:\.|$)")
"""A time within an id. The signed text is `ID.TIME.BODY`, so the time and the begin of a body could be read as others."""
_PREFIX = "whsec_"


def make_secret() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def secret_name(routine: str) -> str:
    """The name of its secret in the vault."""
    return f"routine.{routine}"


def forget_secrets(vault: "Vault", routines: Iterable[str]) -> None:
    """Of routines that were removed: whoever had the secret of one must not begin another of the same name. Blocks."""
    for one in routines:
        try:
            vault.remove(secret_name(one))
        except FreeholdError as error:
            if error.code != "secret.not-found":
                raise


def verify_request(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> str:
    """The id of the message, by which a repetition is recognised. Raises `hook.bad-credentials`."""
    id, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if (
        _ID.fullmatch(id) is None
        or _SHIFTED.search(id) is not None
        or not (at.isascii() and at.isdigit() and len(at) < 16)
    ):
        raise refused()
    if abs(now - int(at)) > TOLERANCE:
        raise refused()
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise refused() from None
    expected = base64.b64encode(hmac.digest(key, f"{id}.{at}.".encode() + body, "sha256"))
    given = headers.get("webhook-signature", "").encode("latin-1", "replace").split(b" ")[:MAX_SIGNATURES]
    # All are compared, so that the time says nothing.
    matched = [hmac.compare_digest(one, b"v1," + expected) for one in given]
    if not any(matched):
        raise refused()
    return id


def read_body(body: bytes) -> Any:
    """JSON where it is JSON, else text."""
    try:
        found = json.loads(body)
        json.dumps(found, allow_nan=False)  # Python reads numbers that JSON does not have
    except (ValueError, RecursionError):
        return body.decode(errors="replace")
    return found


def refused() -> FreeholdError:
    """The same words whatever is wrong, also for a routine that does not exist."""
    return FreeholdError(
        "hook.bad-credentials",
        "The signature is missing, wrong or too old",
        hint="Sign the request as Standard Webhooks describes it, with the secret of this routine",
    )
