"""`freehold open`."""

import html
import os
import socket
import webbrowser
from pathlib import Path
from typing import NotRequired, TypedDict

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option, require_home
from freehold.errors import FreeholdError
from freehold.home import Home, ensure_private_folder


class SignInAddress(TypedDict):
    """Where to sign in. `code` is for the recovery page; `expires_in` is in seconds."""

    url: str
    code: NotRequired[str]
    expires_in: NotRequired[int]


@click.command()
@click.option("--keeper", is_flag=True, help="Open the recovery page, which works when everything else is down.")
@click.option("--print", "only_print", is_flag=True, help="Print the address and do not open a browser.")
@home_option
@json_option(JsonOutput(SignInAddress))
def command(keeper: bool, only_print: bool, home: Home, as_json: bool) -> None:
    """Open this Freehold in the browser.

    Without an owner DID, this creates a link that signs in one browser, once, within ten minutes. With an owner DID,
    it opens the sign-in page. The recovery page asks for a code, which is printed here and works once.

    \b
    Examples:
      freehold open
      freehold open --print
      freehold open --keeper
    """
    from freehold.identity.sign_ins import control_center_url, recovery_url
    from freehold.manifest import load_manifest

    manifest = load_manifest(home.manifest, os.environ).manifest
    require_home(home)
    owner = manifest.owner.did
    if keeper:
        _require_loopback(manifest.keeper.host, None, "keeper.host")
        url = f"{recovery_url(manifest.keeper.port)}/sign-in"
        _require_listening(url, manifest.keeper.host, manifest.keeper.port)
        code = _make_link(home, owner, keeper=True)
        _show(
            {"url": url, "code": code, "expires_in": 600},
            f"{url}\nCode: {code}   works once, within ten minutes",
            as_json,
        )
        return
    if owner is not None:
        url = f"{control_center_url(manifest.gateway.port, manifest.gateway.public_url)}/sign-in"
        if only_print or as_json or not _open_browser(url):
            _show({"url": url}, url, as_json)
        return
    _require_loopback(manifest.gateway.host, manifest.gateway.public_url, "gateway.host")
    page = f"{control_center_url(manifest.gateway.port, None)}/sign-in"
    _require_listening(page, manifest.gateway.host, manifest.gateway.port)
    link = f"{page}#{_make_link(home, None, keeper=False)}"
    if only_print or as_json or not _open_browser(_private_page(home, link).as_uri()):
        _show({"url": link, "expires_in": 600}, link, as_json)


def _make_link(home: Home, owner: str | None, *, keeper: bool) -> str:
    from freehold.identity.sign_ins import SignIns
    from freehold.timeline import Timeline

    with SignIns(home.identity, owner=owner) as sign_ins, Timeline(home.timeline) as timeline:
        token = sign_ins.create_link("keeper" if keeper else "browser")
        timeline.append("identity.link_created", {"purpose": "keeper" if keeper else "browser"}, who="owner")
    return token


def _require_loopback(host: str, public_url: str | None, setting: str) -> None:
    from freehold.manifest.addresses import is_loopback

    if public_url is not None or not is_loopback(host):
        raise FreeholdError(
            "identity.link-not-allowed",
            f"A sign-in link works only for a Freehold that other machines cannot reach; this one is at {public_url or host}",
            hint=f"Set the owner (freehold init --owner your.handle), or set {setting} to 127.0.0.1",
        )


def _require_listening(url: str, host: str, port: int) -> None:
    try:
        socket.create_connection((host.strip("[]"), port), timeout=2).close()
    except OSError as error:
        raise FreeholdError(
            "open.not-running", f"Nothing answers at {url}: {error.strerror or error}", hint="Start it: freehold up"
        ) from None


def _private_page(home: Home, link: str) -> Path:
    """A private page that redirects to the link. All users of the machine can read a command line."""
    ensure_private_folder(home.run)
    page = home.run / "open.html"
    page.unlink(missing_ok=True)
    text = f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(link)}"><title>Freehold</title>'
    with os.fdopen(os.open(page, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(text)
    return page


def _open_browser(url: str) -> bool:
    """Open a graphical browser. Returns whether one was started."""
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("BROWSER")):
        return False
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False


def _show(facts: SignInAddress, words: str, as_json: bool) -> None:
    if as_json:
        echo_json(facts)
    else:
        click.echo(words)
