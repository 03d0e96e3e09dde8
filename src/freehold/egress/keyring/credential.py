"""One credential of the manifest: where its secret may be sent, and in which form."""

import base64
import re
from dataclasses import dataclass
from typing import Literal

from freehold.egress.http1 import HttpRequest
from freehold.egress.names import Host
from freehold.observe.secrets import Secret

AuthForm = Literal["basic", "bearer", "header"]
Writes = Literal["ask", "allow", "deny"]
PointedTool = Literal["git", "npm", "pip"]
READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_READING_POSTS = ("/git-upload-pack",)
"""Requests that read although they are POST: the second of a `git fetch`. At another server they may mean anything."""
_PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,=:@%-]*)+")
_HIDDEN = re.compile(r"//|/\.{1,2}(?:/|$)|%(?:2e|2f|5c|25|00|3b)", re.IGNORECASE)
"""What some servers read as another path: empty and dotted parts, and escaped dots, slashes and percent signs."""
_SCOPED_PACKAGE = re.compile(r"@[a-z0-9~_-][a-z0-9._~-]*%2f[a-z0-9~_-][a-z0-9._~-]*", re.IGNORECASE)
"""How npm writes the name of a package with a scope: as one part of the path. Decoded it leads to the same package."""


@dataclass(frozen=True)
class HostCredential:
    """`paths` and `methods` are all when they are empty. A path stands for itself and everything below it."""

    name: str
    host: Host
    secret: str
    port: int = 443
    form: AuthForm = "bearer"
    header: str = "Authorization"
    user: str = ""
    paths: tuple[str, ...] = ()
    methods: frozenset[str] = frozenset()
    writes: Writes = "ask"
    tools: frozenset[PointedTool] = frozenset()
    variables: tuple[str, ...] = ()
    scope: str = ""

    @property
    def authority(self) -> str:
        return str(self.host) if self.port == 443 else f"{self.host}:{self.port}"

    @property
    def intercepts(self) -> bool:
        """Whether TLS to its host ends at egress, for tools that cannot be pointed at another address."""
        return bool(self.variables) or bool(self.tools & {"npm", "pip"})

    @property
    def base_path(self) -> str:
        return f"{self.paths[0].rstrip('/')}/" if self.paths else "/"

    def covers(self, method: str, target: str) -> bool:
        """Whether a request may carry the secret. A path with two readings is never covered."""
        path = target.partition("?")[0]
        if self.methods and method not in self.methods:
            return False
        if self._is_scoped_package(path):
            return True
        if not _PLAIN_PATH.fullmatch(path) or _HIDDEN.search(path):
            return False
        return not self.paths or any(_is_below(path, one) for one in self.paths)

    def _is_scoped_package(self, path: str) -> bool:
        begin = self.base_path
        return "npm" in self.tools and path.startswith(begin) and bool(_SCOPED_PACKAGE.fullmatch(path[len(begin) :]))

    def is_write(self, method: str, target: str) -> bool:
        """Whether a request changes something at the server, as far as its method tells."""
        path = target.partition("?")[0]
        is_fetch = method == "POST" and "git" in self.tools and path.endswith(_READING_POSTS)
        return method not in READING_METHODS and not is_fetch

    def encode(self, secret: Secret) -> str:
        """The value of the header."""
        value = secret.reveal().strip()
        if self.form == "bearer":
            return f"Bearer {value}"
        return f"Basic {_encode_pair(self._pair(value))}" if self.form == "basic" else value

    def spellings(self, secret: Secret) -> tuple[bytes, ...]:
        """The forms in which a server could return it as it was sent."""
        value = secret.reveal().strip()
        found = [value]
        if self.form == "basic":
            pair = self._pair(value)
            found += [_encode_pair(pair), pair.partition(":")[2]]
        return tuple(dict.fromkeys(one.encode() for one in found if one))

    def holds(self, request: HttpRequest, placeholder: str) -> bool:
        """Whether the header of this credential has the placeholder in it."""
        return any(
            placeholder in value or placeholder in _decode_basic(value) for value in request.values(self.header.lower())
        )

    def _pair(self, value: str) -> str:
        return f"{self.user}:{value}" if self.user else value if ":" in value else f"freehold:{value}"


def _is_below(path: str, prefix: str) -> bool:
    begin = prefix.rstrip("/")
    return path == begin or path.startswith(f"{begin}/")


def _encode_pair(pair: str) -> str:
    return base64.b64encode(pair.encode()).decode()


def _decode_basic(value: str) -> str:
    scheme, _, encoded = value.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(encoded.strip(), validate=True).decode("latin-1")
    except ValueError:
        return ""
