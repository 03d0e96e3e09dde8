"""A Caddyfile: https with certificates of its own for the control center, and for previews that the owner has opened."""

from urllib.parse import urlsplit

from freehold.deploy.section import DeploySection
from freehold.errors import FreeholdError
from freehold.manifest import Manifest

HEAD = """\
# Written by `freehold deploy` from freehold.toml. Change the manifest and write it again.
"""
ASK_PORT = 9180
"""Where Caddy asks itself, and so Freehold, whether a preview may have a certificate. It listens on loopback only."""
ASK_PATH = "/v1/preview/certificate"


def write_caddyfile(manifest: Manifest, upstream: str) -> str:
    """`upstream` is where Caddy reaches the gateway. Raises `deploy.invalid` without a name to serve."""
    gateway = manifest.gateway
    address = urlsplit(gateway.public_url or "")
    if address.scheme != "https" or not address.netloc:
        found = "is not set" if gateway.public_url is None else f"is {gateway.public_url!r}, which is not https"
        raise FreeholdError(
            "deploy.invalid",
            f"gateway.public_url {found}, so Caddy has no name to get a certificate for",
            hint='Set it in freehold.toml, under [gateway]: public_url = "https://agent.example.com"',
        )
    preview = urlsplit(gateway.preview_url or "").netloc
    blocks = [_write_options(manifest, has_previews=bool(preview))]
    blocks.append(_write_site(address.netloc, upstream))
    if preview:
        blocks.append(_write_site(f"*.{preview}", upstream, "\ttls {\n\t\ton_demand\n\t}\n"))
        blocks.append(_write_ask(upstream))
    return HEAD + "\n".join(blocks)


def _write_options(manifest: Manifest, *, has_previews: bool) -> str:
    email = manifest.section(DeploySection).email
    lines = ["admin off", *([] if email is None else [f"email {email}"])]
    if has_previews:
        lines += ["on_demand_tls {", f"\task http://127.0.0.1:{ASK_PORT}{ASK_PATH}", "}"]
    return "{\n" + "".join(f"\t{line}\n" for line in lines) + "}\n"


def _write_site(name: str, upstream: str, tls: str = "") -> str:
    """Answers are passed on at once, for streams of events. Headers that protect the pages come from Freehold."""
    return f"{name} {{\n{tls}\theader -Server\n\treverse_proxy {upstream} {{\n\t\tflush_interval -1\n\t}}\n}}\n"


def _write_ask(upstream: str) -> str:
    """At the name that Freehold has on its own machine: an unknown host is refused."""
    port = upstream.rpartition(":")[2]
    return (
        f"http://127.0.0.1:{ASK_PORT} {{\n\tbind 127.0.0.1\n\treverse_proxy {upstream} {{\n"
        f"\t\theader_up Host 127.0.0.1:{port}\n\t\theader_up X-Forwarded-Proto https\n\t}}\n}}\n"
    )
