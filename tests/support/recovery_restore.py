"""Waits for a restore that was asked for on the recovery page, as its page in a browser does."""

from collections.abc import Callable
from typing import NamedTuple

from tests.support.condition import wait_until


class PageReply(NamedTuple):
    """`location` is where it leads to, below the address of the sign-in; empty when it leads nowhere."""

    status: int
    location: str
    body: str


def wait_for_result(reply: PageReply, get: Callable[[str], PageReply]) -> PageReply:
    """The reply that a short restore gives at once. A long one leads to a page with its progress first."""
    if not reply.location.startswith("/restore?"):
        return reply

    def look() -> PageReply | None:
        found = get(reply.location)
        return None if "<progress" in found.body else found

    found = wait_until(look)
    assert found is not None
    return found
