"""Owner, public addresses, proxies and sign-in."""

import ipaddress
import re
from collections.abc import Iterator

from freehold.manifest.addresses import host_of, is_host_name, is_loopback, split_url
from freehold.manifest.facts import Facts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, dotted, show
from freehold.manifest.rules import Finding, rule

_PLC = re.compile(r"did:plc:[a-z2-7]{24}", re.ASCII)
_WEB = re.compile(r"did:web:([a-z0-9.-]{1,253})", re.ASCII)
_NO_HANDLES = ("alt", "arpa", "example", "internal", "invalid", "local", "localhost", "onion")


@rule("E111")
def bad_did(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """The owner's DID is neither did:plc nor did:web."""
    did = manifest.owner.did
    if did is None or _PLC.fullmatch(did):
        return
    web = _WEB.fullmatch(did)
    if web is None or not is_host_name(web[1]) or "." not in web[1]:
        yield Finding(
            ("owner", "did"),
            f"owner.did is {show(did)}, which is no DID of AT Protocol",
            "A DID looks like did:plc:ewvi7nxzyoun6zhxrhs64oiz; `freehold init --owner HANDLE` finds yours",
        )


@rule("E112")
def bad_handle(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """The owner's handle is no handle."""
    handle = manifest.owner.handle
    if handle is None:
        return
    labels = handle.lower().split(".")
    well_formed = handle.isascii() and "_" not in handle and not handle.endswith(".") and is_host_name(handle)
    if not well_formed or len(labels) < 2 or labels[-1][:1].isdigit() or labels[-1] in _NO_HANDLES:
        yield Finding(
            ("owner", "handle"),
            f"owner.handle is {show(handle)}, which is no handle",
            "A handle is a host name without an @, such as alice.bsky.social",
        )


@rule("W113")
def handle_without_did(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """A handle without a DID lets nobody in."""
    if manifest.owner.handle and not manifest.owner.did:
        yield Finding(
            ("owner", "handle"),
            f"owner.handle is {show(manifest.owner.handle)}, and only a DID lets anybody in",
            f"freehold init --owner {show(manifest.owner.handle)} finds the DID that belongs to it",
        )


def _reachable(manifest: Manifest) -> Iterator[tuple[KeyPath, str]]:
    if manifest.gateway.public_url and not is_loopback(host_of(manifest.gateway.public_url)):
        yield ("gateway", "public_url"), manifest.gateway.public_url
    if not is_loopback(manifest.gateway.host):
        yield ("gateway", "host"), manifest.gateway.host
    if not is_loopback(manifest.keeper.host):
        yield ("keeper", "host"), manifest.keeper.host
    if manifest.ssh.enabled and not is_loopback(manifest.ssh.host):
        yield ("ssh", "host"), manifest.ssh.host


@rule("E114")
def public_without_owner(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """Something is reachable from elsewhere, and no owner is named."""
    if manifest.owner.did:
        return
    for key, value in _reachable(manifest):
        yield Finding(
            key,
            f"{dotted(key)} is {show(value)}, so others can reach this Freehold, and owner.did does not say whose it is",
            "Name the owner with `freehold init --owner YOUR.HANDLE` or OWNER_DID, or stay on 127.0.0.1",
        )


def _urls(manifest: Manifest) -> Iterator[tuple[KeyPath, str, tuple[str, ...]]]:
    """Every key that holds a URL, with the schemes it may have."""
    web = ("https", "http")
    yield ("owner", "plc_url"), manifest.owner.plc_url, web
    optional = {
        ("owner", "service"): manifest.owner.service,
        ("gateway", "public_url"): manifest.gateway.public_url,
        ("gateway", "preview_url"): manifest.gateway.preview_url,
        ("observe", "otlp_endpoint"): manifest.observe.otlp_endpoint,
    }
    for key, url in optional.items():
        if url is not None:
            yield key, url, web
    for name, model in manifest.models.items():
        if model.base_url is not None:
            yield ("models", name, "base_url"), model.base_url, web
    for index, relay in enumerate(manifest.mesh.relays):
        yield ("mesh", "relays", index), relay, ("wss", "ws")


@rule("E115")
def bad_url(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """An address is not a URL that can be used."""
    for key, url, schemes in _urls(manifest):
        parts = split_url(url)
        shown = show(url)
        if parts is None or parts.scheme not in schemes:
            yield Finding(
                key,
                f"{dotted(key)} is {shown}, which is no {schemes[0]} address",
                f"Example: {schemes[0]}://host.example.com",
            )
        elif parts.username or parts.password or parts.fragment:
            yield Finding(key, f"{dotted(key)} holds a user name or fragment", "Write scheme, host and path alone")
        elif key[0] == "gateway" and (parts.path not in ("", "/") or parts.query):
            yield Finding(
                key,
                f"{dotted(key)} is {shown}, which has a path",
                f"Freehold needs a host of its own: {parts.scheme}://{parts.netloc}",
            )


@rule("E116")
def public_url_not_https(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """public_url or preview_url is plain http, and not on this machine."""
    for name in ("public_url", "preview_url"):
        url: str | None = getattr(manifest.gateway, name)
        parts = split_url(url) if url else None
        if url and parts and parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            yield Finding(
                ("gateway", name),
                f"gateway.{name} is {show(url)}, and browsers keep a sign-in only over https",
                f"https://{parts.netloc}, with a reverse proxy such as Caddy in front of port {manifest.gateway.port}",
            )


@rule("E117")
def preview_shares_the_public_host(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """Previews and the control center share a host, and so cookies."""
    preview = manifest.gateway.preview_url
    public = manifest.gateway.public_url
    if preview and public and host_of(preview) and host_of(preview) == host_of(public):
        yield Finding(
            ("gateway", "preview_url"),
            f"gateway.preview_url and gateway.public_url are both on {show(host_of(public))}",
            "Agent-written pages need a host of their own (cookies do not tell ports apart): https://preview.example.net",
        )


@rule("W118")
def public_address_without_url(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """The gateway listens to the network, and no https address is named."""
    if not is_loopback(manifest.gateway.host) and not manifest.gateway.public_url:
        yield Finding(
            ("gateway", "host"),
            f"gateway.host is {show(manifest.gateway.host)} without a gateway.public_url, and sign-in needs https",
            'public_url = "https://agent.example.com", served by a reverse proxy',
        )


@rule("E119")
def bad_trusted_proxy(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """A trusted proxy is no address, or everybody."""
    for index, proxy in enumerate(manifest.gateway.trusted_proxies):
        key: KeyPath = ("gateway", "trusted_proxies", index)
        try:
            network = ipaddress.ip_network(proxy, strict=False)
        except ValueError:
            yield Finding(
                key, f"{dotted(key)} is {show(proxy)}, which is no address or network", 'Example: "10.0.0.0/24"'
            )
            continue
        if network.prefixlen < 8:
            yield Finding(
                key,
                f"{dotted(key)} is {show(proxy)}: anyone in there could claim any address",
                "Name the addresses of the proxies themselves",
            )


@rule("E120")
def session_limits_contradict(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """A sign-in would end at once, or idle out after it has ended."""
    idle, absolute = manifest.gateway.session_idle, manifest.gateway.session_absolute
    for name, seconds in (("session_idle", idle), ("session_absolute", absolute)):
        if seconds < 60:
            yield Finding(
                ("gateway", name),
                f"gateway.{name} is {seconds} s: nobody could stay signed in",
                f'A minute at least: {name} = "1h"',
            )
    if idle > absolute:
        yield Finding(
            ("gateway", "session_idle"),
            f"gateway.session_idle ({idle} s) is longer than gateway.session_absolute ({absolute} s)",
            "Make session_idle the shorter one",
        )


@rule("W121")
def plc_not_https(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """Identities are looked up over plain http."""
    for name in ("plc_url", "service"):
        url: str | None = getattr(manifest.owner, name)
        if url and url.lower().startswith("http:") and not is_loopback(host_of(url)):
            yield Finding(
                ("owner", name),
                f"owner.{name} is {show(url)}: whoever sits on the way could answer as the owner",
                f"https:{url[5:]}",
            )
