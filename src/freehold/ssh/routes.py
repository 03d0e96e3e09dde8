"""SSH access in the API: `/v1/ssh`. The client creates a key, and Freehold signs it for at most a day."""

import asyncio
from datetime import datetime
from functools import cached_property
from typing import Literal

from fastapi import Request
from pydantic import BaseModel, Field

from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import RequestBody, UrlId
from freehold.gateway.moments import to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, post
from freehold.ssh.client_config import render_client_config
from freehold.ssh.credential_issuer import CredentialIssuer, CredentialRequester
from freehold.ssh.credentials import Credential, CredentialStore
from freehold.ssh.keys import fingerprint
from freehold.ssh.section import SshSection
from freehold.ssh.server_status import count_connections

Hours = Field(
    default=None,
    gt=0,
    le=24,
    description="How long it is valid; by default, and at most, ssh.lifetime of the manifest.",
)


class SshServerBody(BaseModel):
    """The address of the SSH server and its host key."""

    enabled: bool
    host: str
    port: int
    user: str
    fingerprint: str
    known_hosts: str
    forwarding: bool
    connected: int | None = Field(description="The number of open connections; null when the server does not answer.")


class SshCredentialBody(BaseModel):
    """A certificate, or a plain key for a client without certificate support."""

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


class RequestSshCertificateBody(RequestBody):
    public_key: str = Field(min_length=20, max_length=4096, description="One line, as in id_ed25519.pub.")
    hours: float | None = Hours
    label: str = Field(default="", max_length=80, description="Its name in the list.")


class RequestSshKeyBody(RequestBody):
    kind: Literal["ed25519", "rsa"] = "ed25519"
    hours: float | None = Hours
    label: str = Field(default="", max_length=80)


class SshCertificateBody(BaseModel):
    """The certificate, and the configuration that a client needs to use it."""

    id: str
    certificate: str
    key_id: str
    expires: datetime
    known_hosts: str
    config: str


class SshKeyBody(BaseModel):
    """A new key pair. The private key is in this reply and is not stored."""

    id: str
    private_key: str
    public_key: str
    expires: datetime
    known_hosts: str
    config: str


class SshRevokedBody(BaseModel):
    """The revoked credential. Its connections end within a second."""

    id: str


def _credential_body(one: Credential) -> SshCredentialBody:
    return SshCredentialBody(
        id=one.id,
        kind=one.kind,
        label=one.label,
        key_id=one.key_id,
        fingerprint=one.fingerprint,
        created=to_moment(one.created),
        expires=to_moment(one.expires),
        used=None if one.used is None else to_moment(one.used),
        used_from=one.used_from,
        revoked=one.revoked is not None,
    )


def _requester(request: Request) -> CredentialRequester:
    principal = principal_of(request.scope)
    if principal.sign_in is not None:
        return CredentialRequester(f"session:{principal.sign_in.id}", principal.who, principal.address)
    assert principal.token is not None  # the guard lets only sign-ins and tokens through
    return CredentialRequester(f"token:{principal.token.id}", principal.who, principal.address)


def _seconds(hours: float | None) -> int | None:
    return None if hours is None else int(hours * 3600)


class SshRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services

    @cached_property
    def _issuer(self) -> CredentialIssuer:
        """Not at construction: its table may have to be made, and routes are loaded on a full disk too."""
        services = self._services
        return CredentialIssuer(services.home, services.manifest, CredentialStore(services.timeline))

    @get("/v1/ssh", scope="read")
    async def get_ssh_server(self) -> SshServerBody:
        """The address of the SSH server and the fingerprint of its host key."""
        endpoint = await asyncio.to_thread(self._issuer.endpoint)
        return SshServerBody(
            enabled=self._services.manifest.section(SshSection).enabled,
            host=endpoint.host,
            port=endpoint.port,
            user="agent",
            fingerprint=fingerprint(endpoint.host_key),
            known_hosts=endpoint.known_hosts,
            forwarding=self._services.manifest.section(SshSection).forwarding,
            connected=await count_connections(self._services.home),
        )

    @get("/v1/ssh/certificates", scope="read")
    async def list_ssh_certificates(self) -> list[SshCredentialBody]:
        """All credentials that have not expired, the newest first. Revoked ones are included."""
        return [_credential_body(one) for one in await asyncio.to_thread(self._issuer.credentials.list)]

    @post("/v1/ssh/certificates", status_code=201, scope="admin")
    async def issue_ssh_certificate(self, body: RequestSshCertificateBody, request: Request) -> SshCertificateBody:
        """Sign a public key. The certificate expires, and it ends with the sign-in or token that requested it."""
        issued = await asyncio.to_thread(
            self._issuer.issue_certificate,
            body.public_key,
            _requester(request),
            seconds=_seconds(body.hours),
            label=body.label,
        )
        endpoint = await asyncio.to_thread(self._issuer.endpoint)
        return SshCertificateBody(
            id=issued.credential.id,
            certificate=issued.certificate,
            key_id=issued.credential.key_id,
            expires=to_moment(issued.credential.expires),
            known_hosts=endpoint.known_hosts,
            config=render_client_config(endpoint, certificate="~/.ssh/freehold-cert.pub"),
        )

    @post("/v1/ssh/keys", status_code=201, scope="admin")
    async def issue_ssh_key(self, body: RequestSshKeyBody, request: Request) -> SshKeyBody:
        """Create a key pair for a client that cannot create one or has no certificate support."""
        issued = await asyncio.to_thread(
            self._issuer.issue_key_pair, _requester(request), body.kind, seconds=_seconds(body.hours), label=body.label
        )
        endpoint = await asyncio.to_thread(self._issuer.endpoint)
        return SshKeyBody(
            id=issued.credential.id,
            private_key=issued.key_pair.private_key,
            public_key=issued.key_pair.public_key,
            expires=to_moment(issued.credential.expires),
            known_hosts=endpoint.known_hosts,
            config=render_client_config(endpoint),
        )

    @delete("/v1/ssh/certificates/{credential}", scope="admin")
    async def revoke_ssh_certificate(self, credential: UrlId, request: Request) -> SshRevokedBody:
        """Revoke a certificate or key."""
        who = principal_of(request.scope).who
        if not await asyncio.to_thread(self._issuer.credentials.revoke, credential, who=who):
            raise FreeholdError(
                "ssh.not-found", f"There is no active key {credential[:40]!r}", hint="freehold ssh --list lists them"
            )
        return SshRevokedBody(id=credential)
