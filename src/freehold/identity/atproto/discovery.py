"""Finds the authorization server of a PDS and checks that its metadata meets the rules of AT Protocol."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from freehold.identity.atproto.fetcher import Fetcher, FetchError
from freehold.identity.atproto.problems import SignInProblem, describe_first_error, escape_for_log, explain_fetch_error
from freehold.identity.atproto.syntax import is_hostname, is_origin

MAX_URL_CHARS = 2000


class _Resource(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    resource: str
    authorization_servers: list[str]


class _Metadata(BaseModel):
    """Only the fields that are used; a server may send more."""

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
    """The issuer of the one authorization server that a PDS names. Raises SignInProblem."""
    place = pds.split("://")[-1]
    try:
        resource = _Resource.model_validate(await fetcher.get_json(f"{pds}/.well-known/oauth-protected-resource"))
    except FetchError as error:
        raise explain_fetch_error(error, "pds") from None
    except ValidationError as error:
        reason = f"checklist 7: the protected-resource document is malformed: {describe_first_error(error)}"
        raise SignInProblem("pds-broken", reason, place=place) from None
    if resource.resource != pds:
        reason = f"checklist 7: the protected-resource document names {escape_for_log(resource.resource)}"
        raise SignInProblem("pds-broken", reason, place=place)
    if len(resource.authorization_servers) != 1:
        reason = f"checklist 7: {len(resource.authorization_servers)} authorization servers; exactly one is required"
        raise SignInProblem("pds-broken", reason, place=place)
    issuer = resource.authorization_servers[0]
    if not is_origin(issuer, fetcher.network.plain):
        reason = f"checklist 7: the authorization server is not a plain https origin: {escape_for_log(issuer)}"
        raise SignInProblem("pds-broken", reason, place=place)
    return issuer


async def discover_server(fetcher: Fetcher, issuer: str, pds: str) -> AuthorizationServer:
    """The endpoints of an authorization server that supports all AT Protocol requires. Raises SignInProblem."""
    place = issuer.split("://")[-1]
    try:
        found = _Metadata.model_validate(await fetcher.get_json(f"{issuer}/.well-known/oauth-authorization-server"))
    except FetchError as error:
        raise explain_fetch_error(error, "server") from None
    except ValidationError as error:
        reason = f"checklist 9: the server's metadata is malformed: {describe_first_error(error)}"
        raise SignInProblem("server-broken", reason, place=place) from None
    if found.issuer != issuer:
        reason = f"checklist 8: the metadata names the issuer {escape_for_log(found.issuer)}, not {issuer}"
        raise SignInProblem("server-broken", reason, place=place)
    for reason in _unmet_requirements(found, pds):
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
            reason = f"checklist 10: {name} is not a plain https address: {escape_for_log(url)}"
            raise SignInProblem("server-broken", reason, place=place)
    return AuthorizationServer(
        issuer=issuer,
        authorization_endpoint=found.authorization_endpoint,
        token_endpoint=found.token_endpoint,
        request_endpoint=found.pushed_authorization_request_endpoint,
        revocation_endpoint=found.revocation_endpoint,
    )


def _unmet_requirements(found: _Metadata, pds: str) -> list[str]:
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
    unmet = [f"{name} lacks {value}" for name, values, wanted in required for value in wanted if value not in values]
    if "none" in found.token_endpoint_auth_signing_alg_values_supported:
        unmet.append("token_endpoint_auth_signing_alg_values_supported contains none")
    if "none" in found.dpop_signing_alg_values_supported:
        unmet.append("dpop_signing_alg_values_supported contains none")
    for name, promised in (
        ("authorization_response_iss_parameter_supported", found.authorization_response_iss_parameter_supported),
        ("require_pushed_authorization_requests", found.require_pushed_authorization_requests),
        ("client_id_metadata_document_supported", found.client_id_metadata_document_supported),
    ):
        if not promised:
            unmet.append(f"{name} is false")
    if found.protected_resources is not None and pds not in found.protected_resources:
        unmet.append(f"protected_resources lacks {pds}")
    return unmet


def _is_endpoint(url: str, plain: frozenset[str]) -> bool:
    """https, a host and a path. No query: the redirect must carry only the parameters that we add."""
    if len(url) > MAX_URL_CHARS or any(ord(character) <= 32 or ord(character) >= 127 for character in url):
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
