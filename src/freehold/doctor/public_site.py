"""Looks at a deployed Freehold as a stranger does: certificate, redirects, headers, closed ports, and that nothing answers."""

import contextlib
import datetime
import http.client
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from freehold.errors import FreeholdError

TIMEOUT = 10.0
PORT_TIMEOUT = 3.0
MIN_DAYS = 14
MAX_BODY = 64 << 10
HEADERS = ("content-security-policy", "strict-transport-security", "x-content-type-options", "referrer-policy")
CLOSED_PORTS = {
    3000: "the gateway without https",
    8001: "the recovery page",
    9091: "the metrics",
    2375: "a docker engine",
}
PRIVATE_PATHS = ("/v1/meta", "/v1/sessions", "/v1/history", "/v1/timeline", "/v1/files/list?path=.", "/v1/openapi.json")


@dataclass(frozen=True)
class PublicFinding:
    """One thing that was looked at. `hint` is what to do if it is not right."""

    name: str
    is_right: bool
    found: str
    hint: str = ""


@dataclass(frozen=True)
class PublicSite:
    """Where it is looked at. `address` is reached in the place of the name, for a site that has no name yet."""

    host: str
    port: int = 443
    http_port: int = 80
    address: str | None = None
    closed_ports: dict[int, str] = field(default_factory=lambda: dict(CLOSED_PORTS))

    @property
    def reached(self) -> str:
        return self.address or self.host


def find_site(url: str) -> PublicSite:
    """Raises `doctor.bad-address`."""
    parts = urlsplit(url if "://" in url else f"https://{url}")
    if parts.scheme != "https" or not parts.hostname:
        raise FreeholdError(
            "doctor.bad-address", f"{url[:200]!r} is not an https address", hint="https://agent.example.com"
        )
    return PublicSite(parts.hostname, parts.port or 443)


def examine_site(site: PublicSite) -> Iterator[PublicFinding]:
    """Everything that a stranger can find out in about twenty requests. Blocking; each step for a bounded time."""
    try:
        yield _check_certificate(site)
    except (OSError, ssl.SSLError) as error:
        yield PublicFinding("certificate", False, f"no https: {error}", "Let the proxy get a certificate for this name")
        return
    yield _check_redirect(site)
    try:
        yield from _check_headers(site)
        yield from _check_strangers(site)
        yield _check_other_name(site)
    except (OSError, http.client.HTTPException) as error:
        yield PublicFinding("answers", False, f"it stopped answering: {error}", "Look at the log of the proxy")
    yield from _check_ports(site)


def _check_certificate(site: PublicSite) -> PublicFinding:
    context = ssl.create_default_context()
    with (
        socket.create_connection((site.reached, site.port), TIMEOUT) as plain,
        context.wrap_socket(plain, server_hostname=site.host) as secure,
    ):
        found = secure.getpeercert() or {}
        version = secure.version()
    ends = ssl.cert_time_to_seconds(str(found["notAfter"]))
    days = int((ends - datetime.datetime.now(tz=datetime.UTC).timestamp()) // 86400)
    return PublicFinding(
        "certificate", days >= MIN_DAYS, f"valid for {days} days, {version}", "See why the proxy does not renew it"
    )


def _check_redirect(site: PublicSite) -> PublicFinding:
    client = http.client.HTTPConnection(site.reached, site.http_port, timeout=PORT_TIMEOUT)
    try:
        client.request("GET", "/", headers={"Host": site.host})
        answer = client.getresponse()
        target = answer.headers.get("location", "")
    except (OSError, http.client.HTTPException):
        return PublicFinding("plain http", True, "port 80 is closed")
    finally:
        client.close()
    is_right = answer.status in (301, 302, 307, 308) and target.startswith(f"https://{site.host}")
    return PublicFinding(
        "plain http", is_right, f"{answer.status} {target}"[:200].strip(), "Let the proxy redirect http to https"
    )


def _check_headers(site: PublicSite) -> Iterator[PublicFinding]:
    answer = _ask(site, "GET", "/")
    missing = [name for name in HEADERS if name not in answer]
    doubled = [name for name in HEADERS if len(answer.get(name, [])) > 1]
    yield PublicFinding("page", answer["status"] == ["200"], f"status {answer['status'][0]}", "freehold status")
    seen = ", ".join([*(f"{name} is missing" for name in missing), *(f"{name} is there twice" for name in doubled)])
    yield PublicFinding(
        "headers",
        not seen,
        seen or f"{len(HEADERS)} headers, each once",
        "Let the proxy pass on the headers of Freehold",
    )


def _check_strangers(site: PublicSite) -> Iterator[PublicFinding]:
    answered = [path for path in PRIVATE_PATHS if _ask(site, "GET", path)["status"] != ["401"]]
    answered += [
        path for path in ("/v1/stop", "/v1/sessions") if _ask(site, "POST", path)["status"] not in (["401"], ["403"])
    ]
    yield PublicFinding(
        "without the owner",
        not answered,
        f"answered: {', '.join(answered)}" if answered else "every request was refused",
        "Something else than Freehold answers at this name, or a proxy adds credentials",
    )
    socket_headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    status = _ask(site, "GET", "/v1/socket", {**socket_headers, "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="})[
        "status"
    ]
    yield PublicFinding("socket", status != ["101"], f"status {status[0]}", "A socket was opened without a sign-in")


def _check_other_name(site: PublicSite) -> PublicFinding:
    """Whether Freehold answers there. Caddy itself says 200 with nothing to a name that it does not serve."""
    answer = _ask(site, "GET", "/", {"Host": "another.invalid"})
    status = answer["status"][0]
    is_ours = status == "200" and HEADERS[0] in answer
    return PublicFinding("another name", not is_ours, f"status {status}", "Let the proxy serve this name only")


def _check_ports(site: PublicSite) -> Iterator[PublicFinding]:
    for port, what in site.closed_ports.items():
        try:
            socket.create_connection((site.reached, port), PORT_TIMEOUT).close()
        except OSError:
            yield PublicFinding(f"port {port}", True, "closed")
        else:
            yield PublicFinding(
                f"port {port}", False, f"open: {what}", "Close it in the firewall, or listen on 127.0.0.1"
            )


def _ask(site: PublicSite, method: str, path: str, headers: dict[str, str] | None = None) -> dict[str, list[str]]:
    """The headers of the answer by lower-case name, and its status as `status`."""
    context = ssl.create_default_context()
    plain = socket.create_connection((site.reached, site.port), TIMEOUT)
    with contextlib.closing(context.wrap_socket(plain, server_hostname=site.host)) as secure:
        client = http.client.HTTPConnection(site.host, site.port, timeout=TIMEOUT)
        client.sock = secure
        client.request(method, path, headers={"Host": _show_host(site), **(headers or {})})
        answer = client.getresponse()
        answer.read(MAX_BODY)
    found: dict[str, list[str]] = {"status": [str(answer.status)]}
    for name, value in answer.headers.items():
        found.setdefault(name.lower(), []).append(value)
    return found


def _show_host(site: PublicSite) -> str:
    return site.host if site.port == 443 or site.address is not None else f"{site.host}:{site.port}"
