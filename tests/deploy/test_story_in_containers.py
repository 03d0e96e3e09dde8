"""The whole story through Caddy and two containers: sign in, prompt, sealed work, change, undo.

A real browser, a real PDS, the real Caddy, the files of `freehold deploy compose`, and a scripted model.
"""

import contextlib
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Page, expect
from tests.e2e.atproto.certificates import Certificates, make_certificates
from tests.e2e.atproto.localnet import PASSWORD, local_network
from tests.support.browser import DESKTOP, PAGE_TIMEOUT, run_sync_browser
from tests.support.compose import ROOT, ComposeProject, compose_engine, describe_override
from tests.support.condition import wait_until
from tests.support.cut_proxy import CutProxy
from tests.support.pds_gateway import network_environment
from tests.support.ports import free_ports

from freehold.deploy.cli import command
from freehold.identity.atproto.fetcher import NetworkOverrides

pytestmark = pytest.mark.shared_processes
HOST, PDS, DIRECTORY = "agent.atp.internal", "pds.atp.internal", "plc.directory"
SUBNET, OTHER_SUBNET = "10.213.77.", "10.213.78."
"""Another test may have a deployment with the first one at the same time."""
MODEL_PORT, PDS_PORT, NAMES_PORT = 3999, 3998, 3997
SHARED = "/passage"
TALE = "/var/lib/freehold/workspace/tale"
MANIFEST = f"""
[owner]
did = "{{did}}"
handle = "alice.test"
[gateway]
public_url = "https://{HOST}"
[deploy]
caddy = true
ssh_port = {{ssh_port}}
[models.local]
kind = "openai-compatible"
base_url = "http://127.0.0.1:{MODEL_PORT}/v1"
key = "env:SCRIPTED_KEY"
model = "scripted"
"""


@dataclass(frozen=True)
class Story:
    """`flags` make Chromium know the names and the certificate."""

    project: ComposeProject
    flags: tuple[str, ...]


def write_folder(folder: Path, shared: Path, did: str, https_port: int) -> None:
    """As the owner does; then what stands in the place of certificates and addresses of the internet."""
    http_port, ssh_port = free_ports(2)
    home = folder.with_name("home")
    home.mkdir()
    (home / "freehold.toml").write_text(MANIFEST.format(did=did, ssh_port=ssh_port))
    words = ["compose", str(folder), "--home", str(home), "--brain-image", "brain:1", "--computer-image", "computer:1"]
    written = CliRunner().invoke(command, words)
    assert written.exit_code == 0, written.output
    compose, caddyfile = folder / "compose.yaml", folder / "Caddyfile"
    text = compose.read_text().replace('"80:80"', f'"{http_port}:80"').replace('"443:443', f'"{https_port}:443')
    compose.write_text(text.replace(SUBNET, OTHER_SUBNET))
    own = f"\n{HOST} {{\n\ttls {SHARED}/certificate.pem {SHARED}/key.pem\n"
    caddyfile.write_text(caddyfile.read_text().replace(f"\n{HOST} {{\n", own, 1))
    network = NetworkOverrides(
        routes=dict.fromkeys((PDS, DIRECTORY), ("127.0.0.1", PDS_PORT)),
        authority=Path(SHARED, "authority.pem"),
        nameserver=("127.0.0.1", NAMES_PORT),
    )
    override = describe_override()
    brain, caddy = override["services"]["brain"], override["services"]["caddy"]
    brain["entrypoint"] = ["python", "-m", "tests.support.pds_keeper"]
    brain["command"] = ["--home", "/var/lib/freehold"]
    brain["environment"] |= {**network_environment(network), "PYTHONPATH": str(ROOT)}
    for service in (brain, caddy):
        service["volumes"] = [*service["volumes"], f"{shared}:{SHARED}:ro"]
    (folder / "compose.override.yaml").write_text(json.dumps(override))


def share_certificates(folder: Path) -> Certificates:
    """For the containers, which have users of their own."""
    made = make_certificates(folder, [PDS, DIRECTORY, HOST])
    folder.chmod(0o755)
    for file in folder.iterdir():
        file.chmod(0o644)
    return made


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("story")
    (https_port,) = free_ports(1)
    certificates = share_certificates(folder / "shared")
    with ExitStack() as stack:
        api, engine = stack.enter_context(compose_engine())
        net = stack.enter_context(
            local_network(
                folder / "pds", ["alice.test"], hostname=PDS, certificates=certificates, routes={HOST: https_port}
            )
        )
        assert net.tls_port is not None
        stack.enter_context(contextlib.closing(CutProxy(("127.0.0.1", net.tls_port), folder / "shared" / "pds.sock")))
        write_folder(folder / "deployed", folder / "shared", net.dids["alice.test"], https_port)
        project = ComposeProject(folder / "deployed", api, engine)
        stack.callback(project.run, "down", "-v", "-t", "5", check=False)
        project.run("up", "-d")
        project.await_ready()
        project.freehold("agents", "add", "builtin")
        project.run("exec", "-T", "-d", "brain", "python", "-m", "freehold.testing.model", str(MODEL_PORT))
        ports = (str(PDS_PORT), str(NAMES_PORT))
        project.run("exec", "-T", "-d", "brain", "python", "-m", "tests.support.passage", f"{SHARED}/pds.sock", *ports)
        wait_until(lambda: _answers(project, MODEL_PORT) and _answers(project, PDS_PORT))
        rules = f"MAP {HOST}:443 127.0.0.1:{https_port}, MAP {PDS}:443 127.0.0.1:{net.tls_port}, MAP * ~NOTFOUND"
        trusted = f"--ignore-certificate-errors-spki-list={certificates.fingerprint}"
        yield Story(project, (f"--host-resolver-rules={rules}", trusted))


def _answers(project: ComposeProject, port: int) -> bool:
    return project.execute("bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}", check=False).returncode == 0


@pytest.fixture
def page(story: Story) -> Iterator[Page]:
    """The owner, who has signed in by the PDS."""
    with run_sync_browser(*story.flags) as browser:
        context = browser.new_context(base_url=f"https://{HOST}", service_workers="block", viewport=DESKTOP)
        context.set_default_timeout(PAGE_TIMEOUT)
        page = context.new_page()
        page.goto("/")
        page.get_by_role("button", name="Sign in").click()
        page.locator("input[autocomplete=current-password]").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Authorize").click()
        page.locator(".app-connection[data-state=live]").wait_for()
        yield page


@pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed")
def test_the_whole_story_in_containers(story: Story, page: Page) -> None:
    project = story.project
    page.get_by_role("button", name="New", exact=True).click()
    page.get_by_label("Message").fill("WRITE tale once upon a time")
    page.get_by_label("Message").press("Enter")
    asked = page.get_by_role("alertdialog", name="Permission request")
    expect(asked).to_contain_text("tale")
    assert project.execute("test", "-e", TALE, check=False).returncode == 1, "it asks first"
    asked.get_by_role("button", name="Once").click()
    wait_until(lambda: project.execute("cat", TALE, check=False).stdout.strip() == "once upon a time")

    page.get_by_role("link", name="Terminal").click()
    page.get_by_role("button", name="Open a terminal").click()
    screen = page.locator(".terminal-screen:not([hidden]) .xterm-rows")
    screen.get_by_text("$").first.wait_for()
    page.locator(".terminal-screen:not([hidden]) textarea").focus()
    page.keyboard.type("cat tale; ls /sys/class/net; id -un; echo in-$((40+2))\n")
    expect(screen).to_contain_text("in-42")
    expect(screen).to_contain_text("once upon a time")
    expect(screen).to_contain_text("agent")
    expect(screen).not_to_contain_text("eth0")

    page.get_by_role("link", name="History").click()
    page.get_by_role("button", name="Undo last change").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("workspace/tale")
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(dialog).to_have_count(0)
    assert project.execute("test", "-e", TALE, check=False).returncode == 1
