"""Resolves a handle to a DID, and a DID to its account. Nothing is cached: each sign-in resolves again."""

import asyncio
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

import dns.asyncresolver
import dns.exception
import dns.resolver
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from freehold.errors import FreeholdError
from freehold.identity.atproto.fetcher import Fetcher, FetchError, NetworkOverrides
from freehold.identity.atproto.problems import SignInProblem, describe_first_error, escape_for_log, explain_fetch_error
from freehold.identity.atproto.syntax import is_did, is_handle, is_origin, normalize_handle

PLC_URL = "https://plc.directory"
DNS_TIMEOUT = 5.0


class _Service(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    id: str
    type: str | list[str]
    serviceEndpoint: str | dict[str, object] | list[object]


class _Document(BaseModel):
    """The fields of a DID document that are used; other fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore")
    id: str
    also_known_as: Annotated[list[str], Field(alias="alsoKnownAs", max_length=100)] = []
    service: Annotated[list[_Service], Field(max_length=100)] = []


@dataclass(frozen=True)
class Account:
    """`handle` is what the DID document claims. Only `Resolver.resolve_handle` checks that the handle names this DID."""

    did: str
    pds: str
    handle: str | None


class Resolver:
    def __init__(self, fetcher: Fetcher, *, plc_url: str = PLC_URL) -> None:
        self._fetcher = fetcher
        self._plc_url = plc_url.rstrip("/")

    async def resolve_did(self, did: str) -> Account:
        """The account of this DID. Raises SignInProblem."""
        if not is_did(did):
            raise SignInProblem(
                "did-unknown", f"checklist 2: {escape_for_log(did)} is neither did:plc nor did:web", place=did[:80]
            )
        web = did.startswith("did:web:")
        url = f"https://{did[8:]}/.well-known/did.json" if web else f"{self._plc_url}/{quote(did, safe=':')}"
        try:
            document = _Document.model_validate(await self._fetcher.get_json(url))
        except FetchError as error:
            if error.failure == "status":
                raise SignInProblem("did-unknown", f"checklist 2: {error}", place=did) from None
            raise explain_fetch_error(error, "directory") from None
        except ValidationError as error:
            reason = f"checklist 3: the document of {did} is malformed: {describe_first_error(error)}"
            raise SignInProblem("directory-broken", reason, place=self._place(did)) from None
        if document.id != did:
            reason = f"checklist 3: the document of {did} names {escape_for_log(document.id)}"
            raise SignInProblem("directory-broken", reason, place=self._place(did))
        return Account(did, self._find_pds(document), _claimed_handle(document))

    async def resolve_handle(self, handle: str, *, service: str | None = None) -> Account:
        """The account of a handle. The DID must claim the handle in turn. Raises FreeholdError.

        `service` is asked (com.atproto.identity.resolveHandle) only when neither DNS nor the host of the handle answers.
        """
        name = normalize_handle(handle)
        if not is_handle(name):
            raise FreeholdError(
                "identity.handle",
                f"{handle[:100]!r} is not a handle",
                hint="Give a handle such as alice.bsky.social, or a DID such as did:plc:…",
            )
        did = await self._by_txt(name) or await self._by_well_known(name)
        if did is None and service is not None:
            did = await self._by_service(name, service)
        if did is None:
            raise FreeholdError(
                "identity.handle-unknown",
                f"Neither DNS (_atproto.{name}) nor https://{name}/.well-known/atproto-did names a DID",
                hint="Check the spelling, or give the DID, which the settings of your account show",
            )
        account = await self.resolve_did(did)
        if account.handle != name:
            raise FreeholdError(
                "identity.handle-not-claimed",
                f"{name} points to {did}, but the document of that DID claims {account.handle or 'no handle'}",
                hint="Set the handle in the settings of the account, or give the DID",
            )
        return account

    async def _by_txt(self, handle: str) -> str | None:
        """The DID in DNS, or None when DNS has none or does not answer. Two different DIDs are an error."""
        nameserver = self._fetcher.network.nameserver
        try:
            resolver = dns.asyncresolver.Resolver(configure=nameserver is None)
            if nameserver is not None:
                resolver.nameservers, resolver.port = [nameserver[0]], nameserver[1]
            answer = await resolver.resolve(f"_atproto.{handle}.", "TXT", lifetime=DNS_TIMEOUT)
        except (dns.exception.DNSException, OSError):
            return None
        texts = [b"".join(record.strings).decode("ascii", "replace") for record in answer]
        found = {text[4:] for text in texts if text.startswith("did=")}
        if len(found) > 1:
            raise FreeholdError(
                "identity.handle-ambiguous",
                f"DNS names {len(found)} different DIDs for {handle}",
                hint=f"Keep one TXT record at _atproto.{handle}, or give the DID",
            )
        return next((did for did in found if is_did(did)), None)

    async def _by_well_known(self, handle: str) -> str | None:
        try:
            answer = await self._fetcher.request("GET", f"https://{handle}/.well-known/atproto-did")
        except FetchError:
            return None
        kind = answer.headers.get("content-type", "").split(";")[0].strip().lower()
        did = answer.body[:2048].decode("ascii", "replace").strip()
        return did if answer.status == 200 and kind == "text/plain" and is_did(did) else None

    async def _by_service(self, handle: str, service: str) -> str | None:
        query = f"/xrpc/com.atproto.identity.resolveHandle?handle={quote(handle, safe='')}"
        try:
            did = (await self._fetcher.get_json(service.rstrip("/") + query)).get("did")
        except FetchError:
            return None
        return did if isinstance(did, str) and is_did(did) else None

    def _find_pds(self, document: _Document) -> str:
        entries = [entry for entry in document.service if entry.id in ("#atproto_pds", f"{document.id}#atproto_pds")]
        place = self._place(document.id)
        if not entries:
            raise SignInProblem("directory-broken", f"checklist 5: {document.id} names no #atproto_pds", place=place)
        entry = entries[0]
        if entry.type != "AtprotoPersonalDataServer":
            reason = f"checklist 5: #atproto_pds of {document.id} is a {escape_for_log(entry.type)}"
            raise SignInProblem("directory-broken", reason, place=place)
        endpoint = entry.serviceEndpoint
        pds = endpoint.removesuffix("/") if isinstance(endpoint, str) else ""
        if not is_origin(pds, self._fetcher.network.plain):
            reason = f"checklist 5: the PDS of {document.id} is not a plain https origin: {escape_for_log(endpoint)}"
            raise SignInProblem("directory-broken", reason, place=place)
        return pds

    def _place(self, did: str) -> str:
        return did[8:] if did.startswith("did:web:") else self._plc_url.split("://")[-1]


def resolve_handle(
    handle: str, *, service: str | None = None, plc_url: str = PLC_URL, network: NetworkOverrides | None = None
) -> str:
    """The DID of a handle; a DID is returned as it is when it exists. For `freehold init`. Raises FreeholdError."""
    resolver = Resolver(Fetcher(network), plc_url=plc_url)
    if handle.strip().startswith("did:"):
        return asyncio.run(resolver.resolve_did(handle.strip())).did
    return asyncio.run(resolver.resolve_handle(handle, service=service)).did


def _claimed_handle(document: _Document) -> str | None:
    for name in document.also_known_as:
        if name.startswith("at://"):
            handle = normalize_handle(name[5:])
            return handle if is_handle(handle) else None
    return None
