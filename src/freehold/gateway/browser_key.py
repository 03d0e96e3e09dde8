"""How a page of the control center proves its sign-in: with a key that it keeps in its own storage.

A browser gives a page's storage to one origin only: scheme, name and port. It sends a cookie to every port of a name,
also to an app that `ssh -L` forwards. So the control center has no cookie that signs in.
"""

from collections.abc import Mapping

SCHEME = b"sign-in"
"""In the header `Authorization: Sign-In KEY`."""
SUBPROTOCOL = "freehold"
"""A page cannot set headers of a WebSocket. It offers this subprotocol, which is chosen, and one with its key."""
KEY_SUBPROTOCOL = "freehold.key."


def read_key(headers: Mapping[bytes, bytes], kind: str) -> str | None:
    """The key that a request or socket carries; None when it carries none."""
    scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == SCHEME:
        return key.decode("latin-1")
    if kind == "websocket":
        for offered in headers.get(b"sec-websocket-protocol", b"").decode("latin-1").split(","):
            if offered.strip().startswith(KEY_SUBPROTOCOL):
                return offered.strip().removeprefix(KEY_SUBPROTOCOL)
    return None


def offers_key(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a WebSocket carries its key in a subprotocol. The browser then expects that `SUBPROTOCOL` is chosen."""
    return KEY_SUBPROTOCOL.encode() in headers.get(b"sec-websocket-protocol", b"")
