"""Checks of owner, public addresses, proxies and sign-in."""

import ipaddress
import re
from collections.abc import Iterator

from freehold.manifest.addresses import host_of, is_host_name, is_loopback, split_url
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, show_key, show_value

_PLC = re.compile(r"did:plc:[a-z2-7]{24}", re.ASCII)
_WEB = re.compile(r"did:web:([a-z0-9.-]{1,253})", re.ASCII)
_NO_HANDLES = ("alt", "arpa", "example", "internal", "invalid", "local", "localhost", "onion")


@check("E111")
def bad_did(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The owner's DID is neither did:plc nor did:web."""
    did = manifest.owner.did
    if did is None or _PLC.fullmatch(did):
        return
    web = _WEB.fullmatch(did)
    if web is None or not is_host_name(web[1]) or "." not in web[1]:
        yield CheckFinding(
            ("owner", "did"),
            f"owner.did is {show_value(did)}, which is not an AT Protocol DID",
            "A DID looks like did:plc:ewvi7nxzyoun6zhxrhs64oiz; `freehold init --owner HANDLE` finds yours",
        )


@check("E112")
def bad_handle(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The owner's handle is not valid."""
    handle = manifest.owner.handle
    if handle is None:
        return
    labels = handle.lower().split(".")
    well_formed = handle.isascii() and "_" not in handle and not handle.endswith(".") and is_host_name(handle)
    if not well_formed or len(labels) < 2 or labels[-1][:1].isdigit() or labels[-1] in _NO_HANDLES:
        yield CheckFinding(
            ("owner", "handle"),
            f"owner.handle is {show_value(handle)}, which is not a handle",
            "A handle is a host name without an @, such as alice.bsky.social",
        )


@check("W113")
def handle_without_did(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A handle is set without a DID. Only the DID decides who may sign in."""
    if manifest.owner.handle and not manifest.owner.did:
        yield CheckFinding(
            ("owner", "handle"),
            f"owner.handle is {show_value(manifest.owner.handle)}, but only owner.did decides who may sign in",
            f"freehold init --owner {show_value(manifest.owner.handle)} finds its DID",
        )


def _reachable(manifest: Manifest) -> Iterator[tuple[KeyPath, str]]:
    if manifest.gateway.public_url and not is_loopback(host_of(manifest.gateway.public_url)):
        yield ("gateway", "public_url"), manifest.gateway.public_url
    if not is_loopback(manifest.gateway.host):
        yield ("gateway", "host"), manifest.gateway.host
    if not is_loopback(manifest.keeper.host):
        yield ("keeper", "host"), manifest.keeper.host
    for name, section in manifest.sections():
        for one in section.listen_addresses():
            if not is_loopback(one.host):
                yield (name, one.host_key), one.host


@check("E114")
def public_without_owner(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Something is reachable from other machines, but no owner is set."""
    if manifest.owner.did:
        return
    for key, value in _reachable(manifest):
        yield CheckFinding(
            key,
            f"{show_key(key)} is {show_value(value)}, so other machines can reach this Freehold, but owner.did is not set",
            "Name the owner with `freehold init --owner YOUR.HANDLE` or OWNER_DID, or use 127.0.0.1",
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


@check("E115")
def bad_url(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """An address is not a URL that can be used."""
    for key, url, schemes in _urls(manifest):
        parts = split_url(url)
        shown = show_value(url)
        if parts is None or parts.scheme not in schemes:
            yield CheckFinding(
                key,
                f"{show_key(key)} is {shown}, which is not a {schemes[0]} URL",
                f"Example: {schemes[0]}://host.example.com",
            )
        elif parts.username or parts.password or parts.fragment:
            yield CheckFinding(
                key, f"{show_key(key)} holds a user name or fragment", "Write scheme, host and path alone"
            )
        elif key[0] == "gateway" and (parts.path not in ("", "/") or parts.query):
            yield CheckFinding(
                key,
                f"{show_key(key)} is {shown}, which has a path",
                f"Freehold needs a host of its own: {parts.scheme}://{parts.netloc}",
            )


@check("E116")
def public_url_not_https(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """public_url or preview_url is plain http, and not on this machine."""
    for name in ("public_url", "preview_url"):
        url: str | None = getattr(manifest.gateway, name)
        parts = split_url(url) if url else None
        if url and parts and parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            yield CheckFinding(
                ("gateway", name),
                f"gateway.{name} is {show_value(url)}, and browsers keep a sign-in only over https",
                f"https://{parts.netloc}, with a reverse proxy such as Caddy in front of port {manifest.gateway.port}",
            )


@check("E117")
def preview_shares_the_public_host(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Previews and the control center share a host, and so cookies."""
    preview = manifest.gateway.preview_url
    public = manifest.gateway.public_url
    if preview and public and host_of(preview) and host_of(preview) == host_of(public):
        yield CheckFinding(
            ("gateway", "preview_url"),
            f"gateway.preview_url and gateway.public_url are both on {show_value(host_of(public))}",
            "Agent-written pages need a host of their own (cookies do not tell ports apart): https://preview.example.net",
        )


@check("W118")
def public_address_without_url(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The gateway listens to the network, and no https address is named."""
    if not is_loopback(manifest.gateway.host) and not manifest.gateway.public_url:
        yield CheckFinding(
            ("gateway", "host"),
            f"gateway.host is {show_value(manifest.gateway.host)} without a gateway.public_url, and sign-in needs https",
            'public_url = "https://agent.example.com", served by a reverse proxy',
        )


@check("E119")
def bad_trusted_proxy(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A trusted proxy is not an address, or covers far too many addresses."""
    for index, proxy in enumerate(manifest.gateway.trusted_proxies):
        key: KeyPath = ("gateway", "trusted_proxies", index)
        try:
            network = ipaddress.ip_network(proxy, strict=False)
        except ValueError:
            yield CheckFinding(
                key,
                f"{show_key(key)} is {show_value(proxy)}, which is not an address or a network",
                'Example: "10.0.0.0/24"',
            )
            continue
        if network.prefixlen < 8:
            yield CheckFinding(
                key,
                f"{show_key(key)} is {show_value(proxy)}: anyone in there could claim any address",
                "Name the addresses of the proxies themselves",
            )


@check("E120")
def session_limits_contradict(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Sign-ins would end at once, or the idle time is longer than the total time."""
    idle, absolute = manifest.gateway.sign_in_idle, manifest.gateway.sign_in_absolute
    for name, seconds in (("sign_in_idle", idle), ("sign_in_absolute", absolute)):
        if seconds < 60:
            yield CheckFinding(
                ("gateway", name),
                f"gateway.{name} is {seconds} s: every sign-in would end at once",
                f'A minute at least: {name} = "1h"',
            )
    if idle > absolute:
        yield CheckFinding(
            ("gateway", "sign_in_idle"),
            f"gateway.sign_in_idle ({idle} s) is longer than gateway.sign_in_absolute ({absolute} s)",
            "Make sign_in_idle the shorter one",
        )


@check("W121")
def plc_not_https(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Identities are looked up over plain http."""
    for name in ("plc_url", "service"):
        url: str | None = getattr(manifest.owner, name)
        if url and url.lower().startswith("http:") and not is_loopback(host_of(url)):
            yield CheckFinding(
                ("owner", name),
                f"owner.{name} is {show_value(url)}: anyone on the network path could impersonate the owner",
                f"https:{url[5:]}",
            )
