"""Where a push or pull goes, and which secret of the vault belongs to it."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from freehold.egress.names import parse_host
from freehold.errors import FreeholdError
from freehold.manifest.addresses import is_loopback


@dataclass(frozen=True)
class RemoteAddress:
    """A repository behind HTTP. `path` begins with a slash and has no query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def secret(self) -> str:
        """The name in the vault of the credentials for this host: a token, or `USER:PASSWORD`."""
        usual = 443 if self.scheme == "https" else 80
        return f"git-{self.host}" if self.port == usual else f"git-{self.host}-{self.port}"

    @property
    def url(self) -> str:
        usual = 443 if self.scheme == "https" else 80
        return f"{self.scheme}://{self.host}{'' if self.port == usual else f':{self.port}'}{self.path}"


def parse_remote(url: str) -> RemoteAddress | None:
    """None for what can have no credentials here: SSH, a folder, or HTTP without encryption to another machine."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    is_plain = parts.scheme == "http" and is_loopback(host)
    if (parts.scheme != "https" and not is_plain) or parts.username or parts.password or parts.query or parts.fragment:
        return None
    if not parts.path.startswith("/") or any(char in parts.path for char in "\\ %?#\r\n") or "/../" in parts.path + "/":
        return None
    try:
        name = str(parse_host(host))
    except FreeholdError:
        return None
    return RemoteAddress(parts.scheme, name, port or (443 if parts.scheme == "https" else 80), parts.path.rstrip("/"))
