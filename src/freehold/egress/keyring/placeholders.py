"""The placeholders of credentials: each stands for one credential in one session."""

import re
import secrets
from dataclasses import dataclass

from freehold.computer.contract.conventions import AGENTS_PATH, EGRESS_PORT, LOOPBACK
from freehold.egress.keyring.credential import HostCredential

PREFIX = "freehold-placeholder-"
FOLDER = ".credentials"
INSIDE = f"{AGENTS_PATH}/{FOLDER}"
BUNDLE = "ca-certificates.crt"
NPMRC = "npmrc"
_TRUST_VARIABLES = ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
"""Where OpenSSL, Go, Rust, curl, git, Python and Node look for certificates to trust."""


@dataclass(frozen=True)
class CredentialGrant:
    """Who may use which credential by a placeholder."""

    credential: str
    session: str
    placeholder: str


class CredentialPlaceholders:
    """Those of an earlier gateway process are not accepted."""

    def __init__(self) -> None:
        self._grants: dict[str, CredentialGrant] = {}

    def issue(self, credential: str, session: str) -> CredentialGrant:
        """Idempotent."""
        found = self.find_for(credential, session)
        if found is None:
            found = CredentialGrant(credential, session, PREFIX + secrets.token_urlsafe(24))
            self._grants[found.placeholder] = found
        return found

    def find(self, placeholder: str) -> CredentialGrant | None:
        return self._grants.get(placeholder)

    def find_for(self, credential: str, session: str) -> CredentialGrant | None:
        wanted = (credential, session)
        return next((one for one in self._grants.values() if (one.credential, one.session) == wanted), None)

    def revoke(self, session: str) -> None:
        """Idempotent."""
        for one in [one for one in self._grants.values() if one.session == session]:
            del self._grants[one.placeholder]


def make_environment(granted: list[tuple[HostCredential, str]]) -> dict[str, str]:
    """The variables that make tools use credentials, each given with its placeholder. None of them is a secret."""
    variables: dict[str, str] = {}
    settings: list[tuple[str, str]] = []
    for credential, placeholder in granted:
        own = variable_name(credential.name)
        relay = f"http://{LOOPBACK}:{EGRESS_PORT}/{placeholder}"
        variables[own] = placeholder
        variables[f"{own}_URL"] = relay
        variables.update(dict.fromkeys(credential.variables, placeholder))
        if "git" in credential.tools:
            settings += [
                (f"url.{relay}{path}.insteadOf", f"https://{credential.authority}{path}")
                for path in _beginnings(credential)
            ]
        if "pip" in credential.tools:
            variables["PIP_INDEX_URL"] = f"https://freehold:{placeholder}@{credential.authority}{credential.base_path}"
        if "npm" in credential.tools:
            variables["NPM_CONFIG_GLOBALCONFIG"] = f"{INSIDE}/{NPMRC}"
    if any(credential.intercepts for credential, _ in granted):
        variables.update(dict.fromkeys(_TRUST_VARIABLES, f"{INSIDE}/{BUNDLE}"))
    if settings:
        variables["GIT_CONFIG_COUNT"] = str(len(settings))
        for number, (key, value) in enumerate(settings):
            variables[f"GIT_CONFIG_KEY_{number}"] = key
            variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables


def make_npmrc(credentials: list[HostCredential]) -> str:
    """The settings of npm: each registry, with a variable that holds the placeholder."""
    lines = []
    for credential in credentials:
        if "npm" in credential.tools:
            place = f"{credential.authority}{credential.base_path}"
            lines.append(f"{f'{credential.scope}:' if credential.scope else ''}registry=https://{place}")
            lines.append(f"//{place}:_authToken=${{{variable_name(credential.name)}}}")
    return "".join(f"{line}\n" for line in lines)


def variable_name(credential: str) -> str:
    return f"FREEHOLD_CREDENTIAL_{re.sub('[^A-Z0-9]', '_', credential.upper())}"


def _beginnings(credential: HostCredential) -> list[str]:
    """Only addresses that the credential is for are pointed at the relay. Others keep their usual way."""
    return [path.rstrip("/") or "/" for path in credential.paths] or ["/"]
