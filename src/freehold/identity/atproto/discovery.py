"""Which server signs in the accounts of a PDS, and whether it keeps the rules."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from freehold.identity.atproto.fetch import Fetcher, FetchError
from freehold.identity.atproto.problems import SignInProblem, fetch_problem, first_fault, shown
from freehold.identity.atproto.syntax import is_hostname, is_origin

LONGEST_URL = 2000


class _Resource(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    resource: str
    authorization_servers: list[str]


class _Metadata(BaseModel):
    """Only what is used; a server may say more."""

    model_config = ConfigDict(strict=True, extra="ignore")
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    pushed_authorization_request_endpoint: str
    revocation_endpoint: str | None = None
    response_types_supported: list[str]
    grant_types_supported: list[str]
    code_challenge_methods_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    token_endpoint_auth_signing_alg_values_supported: list[str]
    scopes_supported: list[str]
    dpop_signing_alg_values_supported: list[str]
    authorization_response_iss_parameter_supported: bool
    require_pushed_authorization_requests: bool
    client_id_metadata_document_supported: bool
    protected_resources: list[str] | None = None


@dataclass(frozen=True)
class AuthorizationServer:
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    request_endpoint: str
    revocation_endpoint: str | None


async def find_issuer(fetcher: Fetcher, pds: str) -> str:
    """The one authorization server that a PDS names; raises SignInProblem."""
    place = pds.split("://")[-1]
    try:
        resource = _Resource.model_validate(await fetcher.get_json(f"{pds}/.well-known/oauth-protected-resource"))
    except FetchError as error:
        raise fetch_problem(error, "pds") from None
    except ValidationError as error:
        reason = f"checklist 7: the protected-resource document is malformed: {first_fault(error)}"
        raise SignInProblem("pds-broken", reason, place=place) from None
    if resource.resource != pds:
        reason = f"checklist 7: the protected-resource document is that of {shown(resource.resource)}"
        raise SignInProblem("pds-broken", reason, place=place)
    if len(resource.authorization_servers) != 1:
        reason = f"checklist 7: {len(resource.authorization_servers)} authorization servers instead of one"
        raise SignInProblem("pds-broken", reason, place=place)
    issuer = resource.authorization_servers[0]
    if not is_origin(issuer, fetcher.network.plain):
        reason = f"checklist 7: the authorization server is not a plain https origin: {shown(issuer)}"
        raise SignInProblem("pds-broken", reason, place=place)
    return issuer


async def discover_server(fetcher: Fetcher, issuer: str, pds: str) -> AuthorizationServer:
    """The endpoints of an authorization server that promises everything AT Protocol asks; raises SignInProblem."""
    place = issuer.split("://")[-1]
    try:
        found = _Metadata.model_validate(await fetcher.get_json(f"{issuer}/.well-known/oauth-authorization-server"))
    except FetchError as error:
        raise fetch_problem(error, "server") from None
    except ValidationError as error:
        reason = f"checklist 9: the server's metadata is malformed: {first_fault(error)}"
        raise SignInProblem("server-broken", reason, place=place) from None
    if found.issuer != issuer:
        reason = f"checklist 8: the server calls itself {shown(found.issuer)}, not {issuer}"
        raise SignInProblem("server-broken", reason, place=place)
    for reason in _broken_promises(found, pds):
        raise SignInProblem("server-broken", f"checklist 9: {reason}", place=place)
    endpoints = {
        "authorization_endpoint": found.authorization_endpoint,
        "token_endpoint": found.token_endpoint,
        "pushed_authorization_request_endpoint": found.pushed_authorization_request_endpoint,
    }
    if found.revocation_endpoint is not None:
        endpoints["revocation_endpoint"] = found.revocation_endpoint
    for name, url in endpoints.items():
        if not _is_endpoint(url, fetcher.network.plain):
            reason = f"checklist 10: {name} is not a plain https address: {shown(url)}"
            raise SignInProblem("server-broken", reason, place=place)
    return AuthorizationServer(
        issuer=issuer,
        authorization_endpoint=found.authorization_endpoint,
        token_endpoint=found.token_endpoint,
        request_endpoint=found.pushed_authorization_request_endpoint,
        revocation_endpoint=found.revocation_endpoint,
    )


def _broken_promises(found: _Metadata, pds: str) -> list[str]:
    required: list[tuple[str, list[str], tuple[str, ...]]] = [
        ("response_types_supported", found.response_types_supported, ("code",)),
        ("grant_types_supported", found.grant_types_supported, ("authorization_code", "refresh_token")),
        ("code_challenge_methods_supported", found.code_challenge_methods_supported, ("S256",)),
        (
            "token_endpoint_auth_methods_supported",
            found.token_endpoint_auth_methods_supported,
            ("none", "private_key_jwt"),
        ),
        (
            "token_endpoint_auth_signing_alg_values_supported",
            found.token_endpoint_auth_signing_alg_values_supported,
            ("ES256",),
        ),
        ("scopes_supported", found.scopes_supported, ("atproto",)),
        ("dpop_signing_alg_values_supported", found.dpop_signing_alg_values_supported, ("ES256",)),
    ]
    broken = [f"{name} lacks {value}" for name, values, wanted in required for value in wanted if value not in values]
    if "none" in found.token_endpoint_auth_signing_alg_values_supported:
        broken.append("token_endpoint_auth_signing_alg_values_supported holds none")
    if "none" in found.dpop_signing_alg_values_supported:
        broken.append("dpop_signing_alg_values_supported holds none")
    for name, promised in (
        ("authorization_response_iss_parameter_supported", found.authorization_response_iss_parameter_supported),
        ("require_pushed_authorization_requests", found.require_pushed_authorization_requests),
        ("client_id_metadata_document_supported", found.client_id_metadata_document_supported),
    ):
        if not promised:
            broken.append(f"{name} is false")
    if found.protected_resources is not None and pds not in found.protected_resources:
        broken.append(f"protected_resources lacks {pds}")
    return broken


def _is_endpoint(url: str, plain: frozenset[str]) -> bool:
    """https, a host and a path. No query: the redirect must carry only what we put there."""
    if len(url) > LONGEST_URL or any(ord(character) <= 32 or ord(character) >= 127 for character in url):
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    if parts.query or parts.fragment or "?" in url or "#" in url or "@" in parts.netloc or "\\" in url:
        return False
    if f"{parts.scheme}://{parts.netloc}" in plain:
        return True
    return parts.scheme == "https" and is_hostname(parts.hostname or "") and port != 0
