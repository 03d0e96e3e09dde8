"""The kinds of channels: their settings, and how one is made. Light to import."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from freehold.channels.contract import ChannelKind
from freehold.errors import FreeholdError
from freehold.observe.secrets import Secret

if TYPE_CHECKING:
    from freehold.channels.contract import OwnerChannel
    from freehold.channels.store import ChannelRow
    from freehold.channels.subscriptions import PushSubscriptions
    from freehold.gateway.direct_messages import DirectMessageBox

FindSecret = Callable[[], Secret]
"""The channel's secret of the vault. Blocking. Raises FreeholdError."""

KINDS: tuple[ChannelKind, ...] = ("email", "matrix", "nostr", "telegram", "webpush")
NEEDS_SECRET: frozenset[ChannelKind] = frozenset({"matrix", "telegram"})
# An encrypted message of Nostr is at most 40 kB, of which one letter may take six bytes.
_LIMITS: Mapping[ChannelKind, int] = {
    "email": 50_000,
    "matrix": 16_000,
    "nostr": 5_000,
    "telegram": 4096,
    "webpush": 900,
}
_ADDRESS = re.compile(r"[^\s@<>(),;:\"\\\[\]]{1,64}@[A-Za-z0-9.-]{1,255}", re.ASCII)


def max_text(kind: ChannelKind) -> int:
    """Characters of one message, as UTF-16 counts them."""
    return _LIMITS[kind]


def receives(kind: ChannelKind) -> bool:
    """Whether the owner can answer through it."""
    return kind in ("matrix", "nostr", "telegram")


def _check_server(address: str) -> str:
    """An https address without a password; plain http only to this machine."""
    parts = urlsplit(address)
    if parts.username is not None or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("not an address of a server, such as https://example.com")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_here(parts.hostname)):
        raise ValueError("not encrypted: use https beyond this machine")
    return address.rstrip("/")


def is_here(host: str) -> bool:
    """Whether a host name is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class EmailSettings(_Settings):
    """`tls` encrypts from the start (port 465), `starttls` after a word (port 587), `none` only to this machine."""

    server: str = Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9.:-]+$")
    port: int = Field(default=465, ge=1, le=65535)
    security: Literal["tls", "starttls", "none"] = "tls"
    user: str = Field(default="", max_length=200)
    sender: str = Field(max_length=320)

    @field_validator("sender")
    @classmethod
    def _is_address(cls, value: str) -> str:
        return check_mail_address(value)

    def model_post_init(self, _context: object) -> None:
        if self.security == "none" and not is_here(self.server):
            raise ValueError("security none is for a server on this machine")


class MatrixSettings(_Settings):
    homeserver: str = Field(max_length=300)
    _server = field_validator("homeserver")(_check_server)


class TelegramSettings(_Settings):
    api: str = Field(default="https://api.telegram.org", max_length=300)
    _server = field_validator("api")(_check_server)


class NostrSettings(_Settings):
    """None: key and relays are those of the mesh."""


class WebPushSettings(_Settings):
    """None: the keys are made at first use."""


SETTINGS: Mapping[ChannelKind, type[_Settings]] = {
    "email": EmailSettings,
    "matrix": MatrixSettings,
    "nostr": NostrSettings,
    "telegram": TelegramSettings,
    "webpush": WebPushSettings,
}


def check_mail_address(value: str) -> str:
    if _ADDRESS.fullmatch(value) is None:
        raise ValueError("not a mail address")
    return value


def read_settings(kind: ChannelKind, given: Mapping[str, Any]) -> dict[str, Any]:
    """The complete settings. Raises `channels.bad-value`."""
    try:
        return SETTINGS[kind].model_validate(dict(given)).model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "settings"
        known = ", ".join(SETTINGS[kind].model_fields) or "none"
        raise FreeholdError(
            "channels.bad-value",
            f"{where}: {first['msg'].removeprefix('Value error, ')}",
            hint=f"The settings of {kind} are: {known}",
        ) from None


def make_channel(
    row: "ChannelRow", secret: FindSecret, subscriptions: "PushSubscriptions", messages: "DirectMessageBox"
) -> "OwnerChannel":
    """The code of a kind is loaded when a channel of it is used."""
    if row.kind == "email":
        from freehold.channels.mail import MailChannel

        return MailChannel(EmailSettings.model_validate(row.settings), secret)
    if row.kind == "matrix":
        from freehold.channels.matrix import MatrixChannel

        return MatrixChannel(MatrixSettings.model_validate(row.settings), secret)
    if row.kind == "nostr":
        from freehold.channels.nostr import NostrChannel

        return NostrChannel(messages)
    if row.kind == "telegram":
        from freehold.channels.telegram import TelegramChannel

        return TelegramChannel(TelegramSettings.model_validate(row.settings), secret)
    from freehold.channels.web_push import WebPushChannel

    return WebPushChannel(subscriptions)
