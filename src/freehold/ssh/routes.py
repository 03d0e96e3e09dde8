"""Keys for the side door: `/v1/ssh`. A key is made by the client and certified here for a day at most."""

import asyncio
import contextlib
import json
from datetime import UTC, datetime
from typing import Literal

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field

from freehold.errors import FreeholdError
from freehold.gateway.guard import principal_of
from freehold.gateway.house import House
from freehold.gateway.needs import needs
from freehold.ssh.connecting import client_config
from freehold.ssh.credentials import Credential, Credentials
from freehold.ssh.issuing import Issuing, Maker
from freehold.ssh.keys import fingerprint

PATIENCE = 0.5
Hours = Field(default=None, gt=0, le=24, description="Fewer than the manifest's ssh.lifetime, if wished.")


class SshDoor(BaseModel):
    """Where the server is, and the key it shows."""

    enabled: bool
    host: str
    port: int
    user: str
    fingerprint: str
    known_hosts: str
    forwarding: bool
    connected: int | None = Field(description="Connections that are open now; null when the server does not answer.")


class SshCredential(BaseModel):
    """A certificate, or a bare key made for a client that knows no certificates."""

    id: str
    kind: Literal["certificate", "key"]
    label: str
    key_id: str
    fingerprint: str
    created: datetime
    expires: datetime
    used: datetime | None
    used_from: str | None
    revoked: bool


class AskForCertificate(BaseModel):
    model_config = ConfigDict(extra="forbid")
    public_key: str = Field(min_length=20, max_length=4096, description="One line, as in id_ed25519.pub.")
    hours: float | None = Hours
    label: str = Field(default="", max_length=80, description="What it is called in the list.")


class AskForKey(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["ed25519", "rsa"] = "ed25519"
    hours: float | None = Hours
    label: str = Field(default="", max_length=80)


class SshCertificate(BaseModel):
    """The certificate and what a client needs to use it."""

    id: str
    certificate: str
    key_id: str
    expires: datetime
    known_hosts: str
    config: str


class SshKey(BaseModel):
    """A pair that was made here: the private half is in this answer and nowhere else."""

    id: str
    private_key: str
    public_key: str
    expires: datetime
    known_hosts: str
    config: str


class SshRevoked(BaseModel):
    """Its live connections end within a second."""

    id: str


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _row(one: Credential) -> SshCredential:
    return SshCredential(
        id=one.id,
        kind=one.kind,
        label=one.label,
        key_id=one.key_id,
        fingerprint=one.fingerprint,
        created=_moment(one.created),
        expires=_moment(one.expires),
        used=None if one.used is None else _moment(one.used),
        used_from=one.used_from,
        revoked=one.revoked is not None,
    )


def _maker(request: Request) -> Maker:
    principal = principal_of(request.scope)
    if principal.session is not None:
        return Maker(f"session:{principal.session.id}", principal.who, principal.address)
    assert principal.token is not None  # the guard let nobody else through
    return Maker(f"token:{principal.token.id}", principal.who, principal.address)


def _seconds(hours: float | None) -> int | None:
    return None if hours is None else int(hours * 3600)


def add_ssh(app: FastAPI, house: House) -> None:
    issuing = Issuing(house.home, house.manifest, Credentials(house.timeline))

    @app.get("/v1/ssh")
    @needs("read")
    async def ssh_door() -> SshDoor:
        """Where the SSH server is, with the fingerprint to compare."""
        door = await asyncio.to_thread(issuing.door)
        return SshDoor(
            enabled=house.manifest.ssh.enabled,
            host=door.host,
            port=door.port,
            user="agent",
            fingerprint=fingerprint(door.host_key),
            known_hosts=door.known_hosts,
            forwarding=house.manifest.ssh.forwarding,
            connected=await _connected(house),
        )

    @app.get("/v1/ssh/certificates")
    @needs("read")
    async def list_ssh_certificates() -> list[SshCredential]:
        """Every key that has not ended, the newest first; revoked ones too."""
        return [_row(one) for one in await asyncio.to_thread(issuing.credentials.list)]

    @app.post("/v1/ssh/certificates", status_code=201)
    @needs("admin")
    async def issue_ssh_certificate(body: AskForCertificate, request: Request) -> SshCertificate:
        """Certify a public key. It ends by itself, and with the sign-in or token that asked for it."""
        issued = await asyncio.to_thread(
            issuing.issue_certificate, body.public_key, _maker(request), seconds=_seconds(body.hours), label=body.label
        )
        door = await asyncio.to_thread(issuing.door)
        return SshCertificate(
            id=issued.credential.id,
            certificate=issued.certificate,
            key_id=issued.credential.key_id,
            expires=_moment(issued.credential.expires),
            known_hosts=door.known_hosts,
            config=client_config(door, certificate="~/.ssh/freehold-cert.pub"),
        )

    @app.post("/v1/ssh/keys", status_code=201)
    @needs("admin")
    async def issue_ssh_key(body: AskForKey, request: Request) -> SshKey:
        """A pair for a client that cannot make its own or knows no certificates."""
        issued = await asyncio.to_thread(
            issuing.issue_pair, _maker(request), body.kind, seconds=_seconds(body.hours), label=body.label
        )
        door = await asyncio.to_thread(issuing.door)
        return SshKey(
            id=issued.credential.id,
            private_key=issued.pair.private_key,
            public_key=issued.pair.public_key,
            expires=_moment(issued.credential.expires),
            known_hosts=door.known_hosts,
            config=client_config(door),
        )

    @app.delete("/v1/ssh/certificates/{credential}")
    @needs("admin")
    async def revoke_ssh_certificate(credential: str, request: Request) -> SshRevoked:
        """End a certificate or key at once."""
        who = principal_of(request.scope).who
        if not await asyncio.to_thread(issuing.credentials.revoke, credential, who=who):
            raise FreeholdError("ssh.not-found", "There is no such key", hint="freehold ssh --list shows them")
        return SshRevoked(id=credential)


async def _connected(house: House) -> int | None:
    with contextlib.suppress(OSError, ValueError, TimeoutError, KeyError):
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_unix_connection(str(house.home.run / "ssh.sock"))
            try:
                return int(json.loads(await reader.readline())["connected"])
            finally:
                writer.close()
    return None
