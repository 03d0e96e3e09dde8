"""The deployment of docker compose, started for real: two containers, work in one, undo by the other, and what kills them."""

import asyncio
import base64
import contextlib
import hashlib
import json
import random
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from tests.support.compose import OWNER, ComposeProject, compose_engine, describe_override
from tests.support.condition import wait_until
from tests.support.doctor import ATTEMPTS_WHERE_ATTACHED, check_attempts
from tests.support.ports import free_ports
from websockets.asyncio.client import connect

from freehold.deploy.cli import command
from freehold.images.kinds import BRAIN_UID

pytestmark = pytest.mark.shared_processes
HOST = "agent.example.com"
PREVIEW = "preview.example.net"
MEMORY = 600 * 1024**2
MODEL_PORT, UPLOAD_MIB = 3999, 40
ENOUGH = 20
"""Files that a work has written when it is killed."""
HEALTHY_SECONDS = 120.0
"""The engine asks every 30 seconds."""
MANIFEST = f"""
[owner]
did = "{OWNER}"
[gateway]
public_url = "https://{HOST}"
preview_url = "https://{PREVIEW}"
[deploy]
caddy = true
ssh_port = {{ssh_port}}
[models.local]
kind = "openai-compatible"
base_url = "http://127.0.0.1:{MODEL_PORT}/v1"
key = "env:SCRIPTED_KEY"
model = "scripted"
[computer.limits]
memory = {MEMORY}
processes = 200
cpus = 1.5
[[computer.mounts]]
source = "{{shared}}"
target = "/mnt/library"
"""


@dataclass(frozen=True)
class Deployed:
    """The containers, and a client that comes in by Caddy, with a token of every scope."""

    project: ComposeProject
    https_port: int
    token: str

    @contextlib.contextmanager
    def client(self, host: str = HOST, *, token: bool = True) -> Iterator[httpx2.Client]:
        """Names are not resolved: each leads to Caddy."""
        headers = {"Host": host, **({"Authorization": f"Bearer {self.token}"} if token else {})}
        with httpx2.Client(base_url=f"https://127.0.0.1:{self.https_port}", headers=headers, verify=False) as client:
            yield client

    def get(self, path: str, host: str = HOST, *, token: bool = True) -> httpx2.Response:
        with self.client(host, token=token) as client:
            return client.get(path, extensions={"sni_hostname": host}, timeout=60)

    def call(self, method: str, path: str, **body: object) -> Any:
        """The API, which must answer with 200."""
        sent = body if method == "POST" else None
        with self.client() as client:
            answer = client.request(method, path, json=sent, extensions={"sni_hostname": HOST}, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def list_events(self, session: str) -> Any:
        """Of a session. Whatever it asks is allowed once."""
        for one in self.call("GET", "/v1/approvals"):
            self.call("POST", f"/v1/approvals/{one['id']}", answer="once")
        return self.call("GET", f"/v1/sessions/{session}/events?after=0&limit=1000")["events"]

    def find_end(self, session: str) -> Any:
        """The events of a session whose turn has ended; None before."""
        events = self.list_events(session)
        return events if any(one["kind"] == "turn.ended" for one in events) else None


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("deployed")
    shared = tmp_path_factory.mktemp("library")
    (shared / "book").write_text("read me\n")
    shared.chmod(0o755)
    http_port, https_port, ssh_port = free_ports(3)
    (home / "freehold.toml").write_text(MANIFEST.format(ssh_port=ssh_port, shared=shared))
    words = ["compose", str(folder), "--home", str(home), "--brain-image", "brain:1", "--computer-image", "computer:1"]
    written = CliRunner().invoke(command, words)
    assert written.exit_code == 0, written.output
    compose, caddyfile = folder / "compose.yaml", folder / "Caddyfile"
    compose.write_text(
        compose.read_text().replace('"80:80"', f'"{http_port}:80"').replace('"443:443', f'"{https_port}:443')
    )
    # Certificates by Caddy's own authority: there is no other here.
    caddyfile.write_text(
        caddyfile.read_text().replace("admin off", "admin off\n\tlocal_certs\n\tskip_install_trust", 1)
    )
    (folder / "compose.override.yaml").write_text(json.dumps(describe_override()))
    with compose_engine() as (api, host):
        project = ComposeProject(folder, api, host)
        try:
            project.run("up", "-d")
            project.await_ready()
            made = project.freehold(
                "token",
                "create",
                "test",
                *(f"--scope={one}" for one in ("read", "files", "terminal", "prompt", "history")),
            )
            yield Deployed(project, https_port, made.stdout.split()[-1])
        finally:
            project.run("down", "-v", "-t", "5", check=False)


@pytest.fixture(scope="module")
def project(deployed: Deployed) -> ComposeProject:
    return deployed.project


@pytest.fixture(scope="module")
def agent(project: ComposeProject) -> str:
    project.freehold("agents", "add", "builtin")
    return "builtin"


def start_model(project: ComposeProject) -> None:
    """Beside Freehold, in its container, with which it is killed."""
    asked = ("curl", "-s", "-o", "/dev/null", f"http://127.0.0.1:{MODEL_PORT}/")
    if project.execute(*asked, check=False).returncode != 0:
        project.run("exec", "-T", "-d", "brain", "python", "-m", "freehold.testing.model", str(MODEL_PORT))
        wait_until(lambda: project.execute(*asked, check=False).returncode == 0)


def test_the_way_in_is_https_with_the_name_of_the_manifest(deployed: Deployed) -> None:
    assert deployed.get("/ready", token=False).status_code == 200
    page = deployed.get("/", token=False)
    assert page.text.startswith("<!doctype html>")
    for name in ("content-security-policy", "strict-transport-security", "x-content-type-options"):
        assert len(page.headers.get_list(name)) == 1, "ours, and not twice"
    assert "caddy" not in page.headers.get("server", "").lower()
    assert deployed.get("/v1/meta", token=False).status_code == 401
    with pytest.raises(httpx2.HTTPError):  # Caddy has no certificate for it
        deployed.get("/ready", "elsewhere.example.com")


def test_the_containers_are_labelled_with_the_manifest_that_runs(deployed: Deployed) -> None:
    """From the manifest to the label, to the API behind the published port, to the metrics."""
    checksum = deployed.get("/v1/meta").json()["manifest_checksum"]
    assert f'manifest="{checksum}"' in deployed.project.freehold("health", "--scrape").stdout
    for service in ("brain", "computer"):
        labels = deployed.project.inspect(service)["Config"]["Labels"]
        assert labels["freehold.manifest"] == f"sha256:{checksum}"


def test_the_walls_of_both_containers_are_what_the_engine_says(project: ComposeProject) -> None:
    for service in ("brain", "computer"):
        found = project.inspect(service)
        host = found["HostConfig"]
        assert found["Config"]["User"] == f"{BRAIN_UID}:{BRAIN_UID}"
        assert host["ReadonlyRootfs"]
        assert host["CapDrop"] == ["ALL"]
        assert not host["CapAdd"]
        assert not host["Privileged"]
        assert "no-new-privileges:true" in host["SecurityOpt"]
        assert not host["Devices"]
        assert not [one for one in found["Mounts"] if one["Source"].endswith(".sock")]
    computer = project.inspect("computer")["HostConfig"]
    assert computer["NetworkMode"] == "none"
    assert any(one.startswith("seccomp=") for one in computer["SecurityOpt"])
    assert (computer["Memory"], computer["MemorySwap"]) == (MEMORY, MEMORY)
    assert (computer["PidsLimit"], computer["NanoCpus"]) == (200, 1_500_000_000)
    shared = {one["Name"] for one in project.inspect("computer")["Mounts"] if one["Type"] == "volume"}
    assert shared == {f"deployed_{name}" for name in ("workspace", "agent-home", "agents", "skills", "link")}


def test_work_is_done_in_the_other_container_and_undone_by_this_one(project: ComposeProject) -> None:
    script = "id -un; cat /mnt/library/book; echo one > story; touch /mnt/library/x || echo refused"
    ran = project.freehold("run", "--", "sh", "-c", script).stdout
    assert ran.split("\n")[:3] == ["agent", "read me", "refused"]
    assert project.execute("cat", "/var/lib/freehold/workspace/story").stdout == "one\n"
    project.freehold("undo")
    assert project.execute("test", "-e", "/var/lib/freehold/workspace/story", check=False).returncode == 1


def test_an_agent_is_asked_by_way_of_caddy_and_works_in_the_other_container(deployed: Deployed, agent: str) -> None:
    """A prompt, a permission, a change of a file, and its undo. The model is beside Freehold, and out of reach for the agent."""
    project = deployed.project
    start_model(project)
    session = deployed.call("POST", "/v1/sessions", agent=agent)["id"]
    deployed.call("POST", f"/v1/sessions/{session}/prompt", text="WRITE tale once upon a time", key="first")
    events = wait_until(lambda: deployed.find_end(session))
    assert [one["data"] for one in events if one["kind"] == "error"] == []
    assert project.execute("cat", "/var/lib/freehold/workspace/tale").stdout.strip() == "once upon a time"
    deployed.call("POST", "/v1/history/undo")
    assert project.execute("test", "-e", "/var/lib/freehold/workspace/tale", check=False).returncode == 1
    reached = project.freehold("run", "--", "curl", "-s", "-m", "3", f"http://127.0.0.1:{MODEL_PORT}/", check=False)
    assert reached.returncode != 0


async def test_a_large_upload_and_a_socket_pass_caddy(deployed: Deployed) -> None:
    """In by hash, and a message of the socket out. A browser sends 200 MB in tests/e2e/test_behind_caddy.py."""
    block = random.Random(1).randbytes(1 << 20)
    with deployed.client() as client:
        sent = client.put(
            "/v1/files/content",
            params={"path": "large"},
            content=(block for _ in range(UPLOAD_MIB)),
            extensions={"sni_hostname": HOST},
            timeout=200,
        )
    assert sent.status_code == 200, sent.text
    found = deployed.project.freehold("run", "--", "sha256sum", "/workspace/large").stdout.split()[0]
    assert found == hashlib.sha256(block * UPLOAD_MIB).hexdigest()
    deployed.project.freehold("run", "--", "rm", "/workspace/large")
    context = ssl._create_unverified_context()
    headers = {"Authorization": f"Bearer {deployed.token}", "Origin": f"https://{HOST}"}
    async with connect(
        f"wss://{HOST}/v1/socket",
        host="127.0.0.1",
        port=deployed.https_port,
        ssl=context,
        additional_headers=headers,
        open_timeout=60,
    ) as socket:
        async with asyncio.timeout(60):
            await socket.send(json.dumps({"type": "subscribe", "topic": "health"}))
            assert json.loads(await socket.recv())


def test_only_an_open_preview_gets_a_certificate(deployed: Deployed) -> None:
    """Its name is asked of Freehold. Nobody outside can ask, and a name that nobody has opened gets no certificate."""
    project, host = deployed.project, f"5173.{PREVIEW}"
    project.freehold(
        "run", "--", "sh", "-c", "echo hello > index.html; setsid python3 -m http.server 5173 >/dev/null 2>&1 &"
    )
    with pytest.raises(httpx2.HTTPError):
        deployed.get("/", host, token=False)
    assert deployed.get(f"/v1/preview/certificate?domain={host}").status_code == 404, "asked from outside"
    with deployed.client() as client:
        opened = client.post("/v1/preview/5173/open", extensions={"sni_hostname": HOST}, timeout=60)
    assert opened.status_code == 200, opened.text
    address = opened.json()["address"].removeprefix(f"https://{host}")
    answer = deployed.get(address, host, token=False)
    assert answer.status_code in (302, 303, 307), answer.text
    cookie = answer.headers["set-cookie"].partition(";")[0]
    with deployed.client(host, token=False) as client:
        page = client.get("/", headers={"Cookie": cookie}, extensions={"sni_hostname": host}, timeout=60)
    assert page.text == "hello\n"
    with pytest.raises(httpx2.HTTPError):
        deployed.get("/", f"5174.{PREVIEW}", token=False)


def test_the_attempts_of_the_doctor_are_refused_in_the_computer(project: ComposeProject) -> None:
    check_attempts(project.freehold("doctor", "--json", check=False).stdout, ATTEMPTS_WHERE_ATTACHED)


def test_the_engine_finds_the_brain_healthy(project: ComposeProject) -> None:
    """Its health check asks `/ready`, from inside."""
    wait_until(lambda: project.inspect("brain")["State"]["Health"]["Status"] == "healthy", HEALTHY_SECONDS)


def test_the_computer_takes_no_second_owner_of_its_link(project: ComposeProject) -> None:
    """Its socket is gone when it is linked, and a second computer cannot be started in its place."""
    files = project.freehold("run", "--", "ls", "-A", "/opt/freehold").stdout.split()
    assert "handover" not in files
    assert project.freehold("run", "--", "sh", "-c", "echo x > /opt/freehold/start.py", check=False).returncode != 0


def test_everything_moves_into_the_empty_volumes_of_another_deployment(project: ComposeProject, tmp_path: Path) -> None:
    """By one archive: files, history and timeline. The manifest is the one of the new place."""
    project.freehold("run", "--", "sh", "-c", "echo one > moved; chmod 640 moved")
    before = json.loads(project.freehold("log", "--json").stdout)
    exported = json.loads(project.freehold("export", "/tmp/freehold.tar", "--json").stdout)
    archive = tmp_path / "freehold.tar"
    archive.write_bytes(base64.b64decode(project.execute("base64", "/tmp/freehold.tar").stdout))
    archive.chmod(0o644)
    other = write_plain_folder(tmp_path, archive, project)
    try:
        key = f"FREEHOLD_RECOVERY_KEY={exported['recovery_key']}"
        told = other.run("run", "--rm", "--no-deps", "-T", "-e", key, "brain", "import", "/freehold.tar").stdout
        assert "Kept freehold.toml as it is here" in told
        other.run("up", "-d")
        other.await_ready()
        assert other.freehold("run", "--", "sh", "-c", "cat moved; stat -c %a moved").stdout == "one\n640\n"
        assert other.freehold("timeline", "verify").returncode == 0
        after = {one["id"]: one for one in json.loads(other.freehold("log", "--json").stdout)["entries"]}
        assert [after[one["id"]] for one in before["entries"]] == before["entries"]
        other.freehold("undo")
        assert other.execute("test", "-e", "/var/lib/freehold/workspace/moved", check=False).returncode == 1
        assert "caddy" not in other.execute("cat", "/var/lib/freehold/freehold.toml").stdout
    finally:
        other.run("down", "-v", "-t", "5", check=False)


def write_plain_folder(folder: Path, archive: Path, project: ComposeProject) -> ComposeProject:
    """Another deployment of the same engine, without Caddy, that sees an archive."""
    home, written = folder / "home", folder / "moved"
    home.mkdir()
    http_port, ssh_port = free_ports(2)
    (home / "freehold.toml").write_text(
        f'[owner]\ndid = "{OWNER}"\n[gateway]\npublic_url = "https://{HOST}"\n'
        f"[deploy]\nhttp_port = {http_port}\nssh_port = {ssh_port}\n"
    )
    words = ["compose", str(written), "--home", str(home), "--brain-image", "brain:1", "--computer-image", "computer:1"]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    override = describe_override()
    del override["services"]["caddy"]
    override["services"]["brain"]["volumes"].append(f"{archive}:/freehold.tar:ro")
    (written / "compose.override.yaml").write_text(json.dumps(override))
    return ComposeProject(written, project.api, project.host, "moved")


@pytest.mark.parametrize(
    ("service", "run_state", "stop_reason", "code"),
    [("computer", "failed", "error", "agent.ended"), ("brain", "uncertain", "interrupted", "session.interrupted")],
)
def test_a_container_that_is_killed_in_the_middle_of_work_loses_nothing_that_was_told(
    deployed: Deployed, agent: str, service: str, run_state: str, stop_reason: str, code: str
) -> None:
    """An agent and a routine write files when it dies. What they stored, and what the API said that it has, is there;
    history and timeline are whole; both works are told as ended by it, and are not begun again."""
    project = deployed.project
    project.freehold("run", "--", "sh", "-c", f"echo before > before-{service}")
    entries = json.loads(project.freehold("log", "--json").stdout)["entries"]
    start_model(project)
    session = deployed.call("POST", "/v1/sessions", agent=agent)["id"]
    by_agent, by_routine = f"agent-{service}", f"routine-{service}"
    deployed.call("POST", f"/v1/sessions/{session}/prompt", text=f"RUN {describe_writer(by_agent)}", key=service)
    project.freehold("routines", "add", by_routine, "--every", "1d", "--command", describe_writer(by_routine))
    project.freehold("routines", "run", by_routine)
    wait_until(lambda: bool(deployed.list_events(session)) and count_stored(project, by_agent) > ENOUGH)
    wait_until(lambda: count_stored(project, by_routine) > ENOUGH)
    sent = send_file(deployed, f"sent-{service}")
    stored = {name: count_stored(project, name) for name in (by_agent, by_routine)}
    before = project.kill(service)
    wait_until(lambda: project.api.read_state(f"deployed_{service}_1").pid not in (0, before))
    project.await_ready()
    wait_until(lambda: project.freehold("run", "--", "true", check=False).returncode == 0)
    assert wait_until(lambda: find_end_of_run(project, by_routine)) == [(run_state, 1)]
    events = wait_until(lambda: deployed.find_end(session))
    assert [one["data"]["code"] for one in events if one["kind"] == "error"] == [code]
    assert [one["data"]["stop_reason"] for one in events if one["kind"] == "turn.ended"] == [stop_reason]
    assert "draft" not in project.freehold("run", "ps ax").stdout, "it goes on"
    for name, count in stored.items():
        assert project.freehold("run", describe_check(name, count)).stdout == "", "lost or damaged"
        assert project.freehold("run", f"cat {name}/begun").stdout == "begun\n", "begun again"
    assert project.freehold("run", f"sha256sum sent-{service}").stdout.split()[0] == sent
    project.freehold("history", "verify")
    project.freehold("timeline", "verify")
    after = {one["id"]: one for one in json.loads(project.freehold("log", "--json").stdout)["entries"]}
    assert [after[one["id"]] for one in entries] == entries
    project.freehold("run", f"rm sent-{service}")
    project.freehold("undo")
    assert project.freehold("run", f"sha256sum sent-{service}").stdout.split()[0] == sent, "not in history"


def describe_writer(folder: str) -> str:
    """Writes one file after the other, and its number behind it when the disk has it. It never ends by itself."""
    write = (
        f"echo line $n > {folder}/draft; sync {folder}/draft; mv {folder}/draft {folder}/$n; echo $n >> {folder}/stored"
    )
    return f"mkdir {folder}; echo begun >> {folder}/begun; n=0; while :; do n=$((n+1)); {write}; done"


def describe_check(folder: str, count: int) -> str:
    """Prints the number of each file of this writer that is not as it was written."""
    return f'for n in $(seq {count}); do [ "$(cat {folder}/$n)" = "line $n" ] || echo $n; done'


def count_stored(project: ComposeProject, folder: str) -> int:
    told = project.execute("cat", f"/var/lib/freehold/workspace/{folder}/stored", check=False).stdout
    return len(told.splitlines())


def send_file(deployed: Deployed, name: str) -> str:
    """Returns the hash of what the API said that it has."""
    content = random.Random(name).randbytes(3 << 20)
    with deployed.client() as client:
        path = "/v1/files/content"
        sent = client.put(path, params={"path": name}, content=content, extensions={"sni_hostname": HOST}, timeout=60)
    assert sent.status_code == 200, sent.text
    return hashlib.sha256(content).hexdigest()


def find_end_of_run(project: ComposeProject, routine: str) -> list[tuple[str, int]]:
    """The state and the attempt of each run of a routine, when all have ended."""
    runs = json.loads(project.freehold("routines", "log", routine, "--json").stdout)
    return [(one["state"], one["attempt"]) for one in runs] if all(one["finished"] for one in runs) else []


def test_one_container_alone_names_what_it_lacks_and_runs_nothing(project: ComposeProject) -> None:
    """A platform that has one container and no privilege: Freehold answers, says why there is no computer, and starts none."""
    brain = describe_override()["services"]["brain"]
    alone = {
        **{key: brain[key] for key in ("entrypoint", "command", "working_dir")},
        "image": "brain:1",
        "user": f"{BRAIN_UID}:{BRAIN_UID}",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "network_mode": "none",
        "environment": {**brain["environment"], "OWNER_DID": OWNER, "PUBLIC_URL": f"https://{HOST}"},
        "tmpfs": [f"/var/lib/freehold:uid={BRAIN_UID},mode=700"],
        "volumes": brain["volumes"],
    }
    (project.folder / "alone.yaml").write_text(json.dumps({"services": {"alone": alone}}))

    def run(*words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        return project.run("-f", "alone.yaml", *words, check=check)

    def freehold(*words: str) -> "subprocess.CompletedProcess[str]":
        return run("exec", "-T", "alone", "freehold", *words, check=False)

    run("up", "-d", "alone")
    try:
        missing = "It lacks seccompProfile: Unconfined (docker: --security-opt seccomp=unconfined)"
        wait_until(lambda: missing in run("logs", "alone").stdout, 90)
        found = json.loads(freehold("status", "--json").stdout)
        assert not found["ready"]
        refused = freehold("run", "--", "true")
        assert refused.returncode != 0, refused.stdout
        assert "computer" in refused.stderr
        assert "freehold deploy compose" in freehold("doctor", "--quick").stdout
    finally:
        run("rm", "-sfv", "alone", check=False)


def test_a_computer_that_is_not_sealed_gets_nothing(project: ComposeProject) -> None:
    """The same computer with a network and a writable root. Freehold names both, and is not ready."""
    project.run("stop", "-t", "5", "computer")
    sealed = (project.folder / "compose.yaml").read_text()
    (project.folder / "weaker.yaml").write_text(sealed.replace("    network_mode: none\n    read_only: true\n", ""))
    project.run("-f", "weaker.yaml", "-f", "compose.override.yaml", "up", "-d", "--no-deps", "computer")
    try:
        wait_until(lambda: "it has a network: eth0" in project.run("logs", "computer").stdout)
        told = project.run("logs", "computer").stdout
        assert "/ can be written (read_only)" in told
        assert not project.is_ready()
        assert "is not sealed" in project.freehold("logs", "keeper", check=False).stdout
    finally:
        project.run("up", "-d", "--no-deps", "computer")
        project.await_ready()


def test_a_mount_a_device_and_a_namespace_that_nobody_named_are_refused(project: ComposeProject) -> None:
    """Each of them alone would be a way out, and leaves everything read-only and without a network."""
    project.run("stop", "-t", "5", "computer")
    more = {
        "volumes": ["/srv:/host:ro"],
        "devices": ["/dev/full:/dev/other", "/dev/full:/opt/tool"],
        "ipc": "host",
    }
    (project.folder / "more.yaml").write_text(json.dumps({"services": {"computer": more}}))
    files = ("-f", "compose.yaml", "-f", "compose.override.yaml", "-f", "more.yaml")
    project.run(*files, "up", "-d", "--no-deps", "computer")
    try:
        wait_until(lambda: "it has no ipc namespace of its own" in project.run("logs", "computer").stdout)
        told = project.run("logs", "computer").stdout
        assert "/host is a mount that the manifest does not name (volumes)" in told
        for path in ("/dev/other", "/opt/tool"):
            assert f"{path} is a device that the manifest does not name (devices)" in told
        assert not project.is_ready()
    finally:
        project.run("up", "-d", "--no-deps", "computer")
        project.await_ready()
