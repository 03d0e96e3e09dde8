"""Checks of `[credentials]`."""

import re
from collections.abc import Iterator

from freehold.credentials.section import CredentialSection, CredentialsSection
from freehold.manifest.addresses import parse_ip
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, show_key, show_value

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"((?:{_LABEL}\.)+[a-z]{_LABEL}|[0-9.]+)(?::([1-9][0-9]{{0,4}}))?")
_PATH = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,=:@-]+)*/?")
_METHOD = re.compile(r"[A-Z]{3,20}")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,60}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,60}")
_SCOPE = re.compile(r"(?:@[a-z0-9][a-z0-9._-]*)?")
_USER = re.compile(r"[!-9;-~]*")
_TAKEN_HEADERS = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer", "expect", "cookie"}
)
_TAKEN_VARIABLES = re.compile(
    r"(?:HOME|PATH|USER|SHELL|IFS|ENV|BASH_ENV|.*_PROXY|LD_.*|PYTHON.*|NODE_.*|GIT_.*|NPM_.*|PIP_.*|SSL_.*|FREEHOLD_.*)"
)


@check("E931")
def unusable_credential(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A credential names something that is not one host, a plain path, a method, a header field or a secret."""
    for name, one in manifest.section(CredentialsSection).credentials.items():
        yield from find_mistakes(name, one)


@check("E932")
def odd_credential_name(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The name of a credential cannot be a part of a variable's name."""
    for name in manifest.section(CredentialsSection).credentials:
        if not _NAME.fullmatch(name):
            place: KeyPath = ("credentials", name)
            yield CheckFinding(
                place, f"{show_value(name)} is not a name for a credential", "Small letters, digits and hyphens"
            )


@check("E933")
def rival_credentials(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Two credentials set the same variable, or set up the same tool for the same addresses."""
    taken: dict[str, str] = {}
    for name, one in manifest.section(CredentialsSection).credentials.items():
        wanted = [f"the variable {variable}" for variable in one.env]
        wanted += ["the index of pip"] if "pip" in one.tools else []
        wanted += [f"the npm registry of {one.scope or 'all packages'}"] if "npm" in one.tools else []
        if "git" in one.tools:
            wanted += [f"git for https://{one.host}{path}" for path in one.paths or ("/",)]
        for thing in wanted:
            if thing in taken:
                place: KeyPath = ("credentials", name)
                words = f"[{show_key(place)}] and [credentials.{taken[thing]}] both set {thing}"
                yield CheckFinding(place, words, "Remove it from one of them")
            taken[thing] = name


def find_mistakes(name: str, one: CredentialSection) -> Iterator[CheckFinding]:
    place: KeyPath = ("credentials", name)

    def wrong(key: str, value: str, hint: str) -> CheckFinding:
        path: KeyPath = (*place, key)
        return CheckFinding(path, f"{show_key(path)} has {show_value(value)}", hint)

    if not _is_host(one.host):
        yield wrong("host", one.host, "One host, such as git.example.org or git.example.org:8443")
    if not re.fullmatch(r"secret:[A-Za-z0-9][A-Za-z0-9._-]{0,99}", one.secret):
        yield wrong("secret", one.secret, "secret:name; freehold secret set name")
    lists = (
        ("paths", one.paths, _PATH, "A path such as /me/notes.git, without dots between slashes and without %"),
        ("methods", one.methods, _METHOD, "GET, HEAD, POST"),
        ("env", one.env, _VARIABLE, "GH_TOKEN"),
    )
    for key, values, pattern, hint in lists:
        for value in values:
            is_dotted = key == "paths" and ("/./" in f"{value}/" or "/../" in f"{value}/")
            is_taken = key == "env" and _TAKEN_VARIABLES.fullmatch(value)
            if not value or not pattern.fullmatch(value) or is_dotted or is_taken:
                yield wrong(key, value, hint)
    if not _HEADER.fullmatch(one.header) or one.header.lower() in _TAKEN_HEADERS or "proxy" in one.header.lower():
        yield wrong("header", one.header, "Authorization, X-Api-Key")
    if not _USER.fullmatch(one.user):
        yield wrong("user", one.user, "A name without blanks and colons")
    if not _SCOPE.fullmatch(one.scope) or (one.scope and "npm" not in one.tools):
        yield wrong("scope", one.scope, 'A scope such as @me, with tools = ["npm"]')


def _is_host(text: str) -> bool:
    """Whether this names one host in its one usual spelling. International names are not supported."""
    found = _HOST.fullmatch(text)
    if found is None or len(found[1]) > 253 or int(found[2] or 443) > 65535 or "xn--" in text:
        return False
    if found[1][0].isdigit() and re.fullmatch(r"[0-9.]+", found[1]):
        address = parse_ip(found[1])
        return address is not None and str(address) == found[1]
    return True
