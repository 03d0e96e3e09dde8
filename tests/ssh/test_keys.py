"""Which keys let in, and which do not."""

import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.ssh.standing import PATIENCE, Key, Standing, ssh, standing

from freehold.errors import FreeholdError
from freehold.identity.tokens import Tokens
from freehold.manifest import Manifest
from freehold.ssh.authority import LEEWAY, Authority, make_pair, read_public_key
from freehold.ssh.credentials import MAX_LIVING, Credentials
from freehold.ssh.issuing import Issuing, Maker
from freehold.ssh.keys import authority_path, ensure_keys, fingerprint, host_key_path, read_private, read_public
from freehold.timeline import Timeline

ISSUED = Maker("local", "owner", "127.0.0.1")


def signed(door: Standing, *options: str, authority: Path | None = None, recorded: bool = True) -> Key:
    """A certificate made by ssh-keygen, so that it can say what ours never does."""
    folder = door.client()
    subprocess.run(
        ["ssh-keygen", "-q", "-s", str(authority or authority_path(door.home)), "-I", "x", "-z", "77", *options, str(folder / "id.pub")],
        check=True,
        capture_output=True,
    )  # fmt: skip
    if recorded:
        with Timeline(door.home.timeline) as timeline:
            Credentials(timeline).add(
                "certificate",
                (folder / "id.pub").read_text(),
                key_id="x",
                source="local",
                address="127.0.0.1",
                expires=time.time() + 3600,
                who="owner",
                serial=77,
            )
    return Key(door.configure(folder), "")


def test_what_ssh_keygen_signs_the_same_way_is_let_in(door: Standing) -> None:
    """So that the refusals below are for the reason they name."""
    assert ssh(signed(door, "-n", "agent", "-V", "-1m:+1h"), "true").returncode == 0


@pytest.mark.parametrize(
    "options",
    [
        ("-n", "agent", "-V", "-2h:-1h"),
        ("-n", "agent", "-V", "+1h:+2h"),
        ("-n", "root", "-V", "-1m:+1h"),
        ("-n", "agent", "-V", "-1m:+1h", "-O", "source-address=192.0.2.0/24"),
        ("-n", "agent", "-V", "-1m:+1h", "-h"),
        ("-n", "agent", "-V", "-1m:+1h", "-O", "critical:unknown@example.com=1"),
    ],
    ids=["expired", "not-yet", "wrong-principal", "wrong-address", "host-certificate", "unknown-condition"],
)
def test_a_certificate_that_does_not_fit_is_refused(door: Standing, options: tuple[str, ...]) -> None:
    refused = ssh(signed(door, *options), "true")
    assert refused.returncode == 255
    assert b"Permission denied" in refused.stderr


def test_a_certificate_of_another_authority_is_refused(door: Standing) -> None:
    other = door.client() / "id"
    assert ssh(signed(door, "-n", "agent", "-V", "-1m:+1h", authority=other), "true").returncode == 255


def test_a_certificate_that_was_never_recorded_is_refused(door: Standing) -> None:
    """Even with the authority's own signature."""
    assert ssh(signed(door, "-n", "agent", "-V", "-1m:+1h", recorded=False), "true").returncode == 255


def test_a_bare_key_of_the_same_pair_is_refused(door: Standing, key: Key) -> None:
    folder = door.client()
    for name in ("id", "id.pub"):
        (folder / name).write_bytes((key.config.parent / name).read_bytes())
    assert ssh(Key(door.configure(folder), ""), "true").returncode == 255


def test_other_names_than_agent_are_refused(key: Key) -> None:
    for name in ("root", "Agent", "owner", ""):
        assert ssh(key, "true", options=("-l", name)).returncode == 255


def test_a_revoked_certificate_is_refused_with_a_hint(door: Standing) -> None:
    key = door.issue()
    assert ssh(key, "true").returncode == 0
    door.revoke(key)
    refused = ssh(key, "true", options=("-o", "LogLevel=INFO"))
    assert refused.returncode == 255
    assert b"has ended or was revoked" in refused.stderr


HOLD = "setsid sleep 5599 & while ! pgrep -f '[s]leep 5599' > /dev/null; do sleep 0.02; done; echo begun; exec cat"


def hold(key: Key) -> "subprocess.Popen[bytes]":
    argv = ["ssh", "-F", str(key.config), "computer", HOLD]
    client = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert client.stdout is not None
    assert client.stdout.readline() == b"begun\n"
    return client


def ended(client: "subprocess.Popen[bytes]", end: Callable[[], object]) -> None:
    with client:
        assert client.poll() is None
        end()
        assert client.wait(timeout=PATIENCE) == 255


def test_revoking_a_key_ends_its_connections_and_what_they_run(door: Standing, key: Key) -> None:
    revoked = door.issue()
    ended(hold(revoked), lambda: door.revoke(revoked))
    gone = "while pgrep -f '[s]leep 5599' > /dev/null; do sleep 0.05; done; echo gone"
    assert ssh(key, gone).stdout == b"gone\n"


def test_signing_out_ends_what_was_opened_with_it(door: Standing) -> None:
    with door.sessions() as sessions:
        session, _ = sessions.create(None, label="test", address="127.0.0.1", method="link")
        key = door.issue(maker=Maker(f"session:{session.id}", "owner", "127.0.0.1"))
        ended(hold(key), lambda: sessions.revoke(session.id))
    assert ssh(key, "true").returncode == 255


def test_revoking_a_token_ends_what_was_opened_with_it(door: Standing) -> None:
    with Tokens(door.home.identity) as tokens:
        token, _ = tokens.create("machine", ["admin"], None)
        key = door.issue(maker=Maker(f"token:{token.id}", "token:machine", "127.0.0.1"))
        ended(hold(key), lambda: tokens.revoke("machine"))
    assert ssh(key, "true").returncode == 255


@pytest.mark.parametrize("what", ["key", "session"])
def test_a_revocation_is_felt_within_a_second(door: Standing, what: str) -> None:
    """The best of three, because the machine may be busy with something else; by waiting for a slow look none would be."""
    with door.sessions() as sessions:
        took: list[float] = []
        while len(took) < 3 and min(took, default=1.0) >= 1.0:
            session, _ = sessions.create(None, label="test", address="127.0.0.1", method="link")
            key = door.issue(maker=Maker(f"session:{session.id}", "owner", "127.0.0.1"))
            with hold(key) as client:
                began = time.monotonic()
                if what == "key":
                    door.revoke(key)
                else:
                    sessions.revoke(session.id)
                assert client.wait(timeout=PATIENCE) == 255
                took.append(time.monotonic() - began)
    assert min(took) < 1.0


def test_a_connection_ends_with_its_certificate(door: Standing) -> None:
    ended(hold(door.issue(seconds=4)), lambda: None)


def test_a_sign_in_that_never_was_certifies_nothing(door: Standing) -> None:
    for source in ("session:0123", "token:0123", "", "root"):
        assert ssh(door.issue(maker=Maker(source, "owner", "127.0.0.1")), "true").returncode == 255


def test_a_key_that_the_agent_makes_inside_opens_nothing(door: Standing, key: Key) -> None:
    """Neither by authorized_keys, nor by signing itself, nor by finding a way to the port from inside."""
    made = ssh(
        key,
        "mkdir -p ~/.ssh && cd ~/.ssh && rm -f id ca && ssh-keygen -q -t ed25519 -N '' -f id && ssh-keygen -q -t ed25519 -N '' -f ca"
        " && cat id.pub ca.pub > authorized_keys && ssh-keygen -q -s ca -I x -n agent id.pub && tar -cf - id id.pub id-cert.pub",
    )
    assert made.returncode == 0, made.stderr
    folder = door.client()
    for name in ("id", "id.pub"):
        (folder / name).unlink()
    subprocess.run(["tar", "-C", str(folder), "-xf", "-"], input=made.stdout, check=True)
    assert ssh(Key(door.configure(folder), ""), "true").returncode == 255
    (folder / "id-cert.pub").unlink()
    assert ssh(Key(door.configure(folder), ""), "true").returncode == 255
    reached = ssh(key, f"exec 3<>/dev/tcp/127.0.0.1/{door.port} && head -c 4 <&3")
    assert reached.stdout == b""
    found = ssh(
        key,
        f"ls {door.home.vault} {door.home.root} 2>&1; grep -rl 'OPENSSH PRIVATE' /home /workspace /tmp /run /etc /var 2>/dev/null",
    )
    assert b"authority" not in found.stdout
    assert set(found.stdout.decode().split()) & {"/home/agent/.ssh/id", "/home/agent/.ssh/ca"}
    assert not [
        path for path in found.stdout.decode().split() if path.startswith(("/run", "/etc", "/var", "/workspace"))
    ]


@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_a_pair_made_for_an_old_client_works_without_a_certificate(door: Standing, kind: str) -> None:
    with Timeline(door.home.timeline) as timeline:
        issuing = Issuing(door.home, Manifest(), Credentials(timeline))
        issued = issuing.issue_pair(ISSUED, kind)  # type: ignore[arg-type]
        folder = door.client()
        (folder / "id").write_text(issued.pair.private_key)
        (folder / "id.pub").unlink()
        key = Key(door.configure(folder), issued.credential.id)
        assert ssh(key, "echo in").stdout == b"in\n"
        kept = [path for path in door.home.root.rglob("*") if path.is_file() and folder not in path.parents]
        secret = issued.pair.private_key.splitlines()[3].encode()
        assert not [path for path in kept if secret in path.read_bytes()]
    ended(hold(key), lambda: door.revoke(key))
    assert ssh(key, "true").returncode == 255


def test_certificates_say_what_they_must(door: Standing) -> None:
    folder = door.client()
    made = Authority(door.home).sign(
        (folder / "id.pub").read_text(), key_id="did:plc:abc session:77", lifetime=10**9, forwarding=False
    )
    assert made.valid_before - made.valid_after == 86_400 + LEEWAY
    (folder / "id-cert.pub").write_text(made.text)
    shown = subprocess.run(
        ["ssh-keygen", "-L", "-f", str(folder / "id-cert.pub")], capture_output=True, text=True, check=True
    ).stdout
    assert "did:plc:abc session:77" in shown
    assert "permit-pty" in shown
    assert not [word for word in ("agent-forwarding", "X11", "port-forwarding", "user-rc") if word in shown]
    assert fingerprint(read_public(authority_path(door.home))) in shown


def test_a_certificate_without_forwarding_forwards_nothing(door: Standing) -> None:
    key = door.issue(manifest=Manifest.model_validate({"ssh": {"forwarding": False}}))
    refused = ssh(key, "true", options=("-o", "ExitOnForwardFailure=yes", "-R", "0:localhost:1"))
    assert refused.returncode == 255


@pytest.mark.parametrize(
    "line",
    [
        "",
        "nonsense",
        "ssh-ed25519 AAAA",
        "ssh-dss AAAAB3NzaC1kc3MAAACBAP1/U4EddRIpUt9KnC7s5Of2EbdSPO9EAMMeP4C2",
        "\0" * 40,
    ],
)
def test_what_is_no_public_key_is_explained(line: str) -> None:
    with pytest.raises(FreeholdError) as caught:
        read_public_key(line)
    assert caught.value.code in ("ssh.bad-key", "ssh.weak-key")
    assert caught.value.hint


def test_short_rsa_keys_are_refused(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", str(tmp_path / "id")], check=True)
    with pytest.raises(FreeholdError, match="2048"):
        read_public_key((tmp_path / "id.pub").read_text())


def test_keys_are_made_once_and_for_the_owners_eyes(tmp_path: Path) -> None:
    from freehold.home import Home

    home = Home(root=tmp_path, run=tmp_path / "run")
    threads = [threading.Thread(target=ensure_keys, args=(home,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    before = [read_private(authority_path(home)), read_private(host_key_path(home))]
    ensure_keys(home)
    assert [read_private(authority_path(home)), read_private(host_key_path(home))] == before
    assert {path.stat().st_mode & 0o777 for path in (authority_path(home), host_key_path(home))} == {0o600}
    authority_path(home).chmod(0o644)
    with pytest.raises(FreeholdError, match="read by others"):
        ensure_keys(home)


def test_the_host_key_stays_the_same_across_restarts(tmp_path: Path) -> None:
    shown = []
    for _ in range(2):
        with standing(tmp_path) as door:
            argv = ["ssh-keyscan", "-t", "ed25519", "-p", str(door.port), "127.0.0.1"]
            shown.append(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()[1:])
            key = door.issue()
            assert ssh(key, "true").returncode == 0
    assert shown[0] == shown[1]


def test_living_keys_are_bounded(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        credentials = Credentials(timeline)
        public = make_pair().public_key

        def add() -> None:
            credentials.add("key", public, key_id="", source="local", address="", expires=time.time() + 60, who="owner")

        for _ in range(MAX_LIVING):
            add()
        with pytest.raises(FreeholdError, match=str(MAX_LIVING)):
            add()
        credentials.revoke(credentials.list()[0].id, who="owner")
        add()


def test_the_last_use_is_known(door: Standing) -> None:
    key = door.issue()
    ssh(key, "true", check=True)
    with Timeline(door.home.timeline) as timeline:
        credentials = Credentials(timeline)
        deadline = time.monotonic() + PATIENCE
        while (found := credentials.get(key.credential)) is None or found.used is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert found.used_from == "127.0.0.1"


def test_the_port_says_nothing_but_its_name_to_strangers(door: Standing) -> None:
    with socket.create_connection(("127.0.0.1", door.port), timeout=PATIENCE) as stranger:
        assert stranger.recv(100).startswith(b"SSH-2.0-Freehold_")
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while stranger.recv(1000):
            continue


def test_a_door_that_closes_shows_everybody_out(tmp_path: Path) -> None:
    with standing(tmp_path) as door:
        client = hold(door.issue())
    with client:
        assert client.wait(timeout=PATIENCE) == 255


def test_a_byte_that_was_changed_on_the_way_ends_that_connection_and_no_other(door: Standing, key: Key) -> None:
    """In the middle of a transfer, where packets take the short way."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def relay() -> None:
            here, _ = listener.accept()
            there = socket.create_connection(("127.0.0.1", door.port))
            with here, there:
                answers = threading.Thread(target=_copy, args=(there, here))
                answers.start()
                _copy(here, there, change_after=100_000)
                with suppress(OSError):
                    there.shutdown(socket.SHUT_RDWR)
                answers.join()

        relaying = threading.Thread(target=relay)
        relaying.start()
        options = ("-o", f"Port={listener.getsockname()[1]}")
        cut = ssh(key, "cat > /dev/null; echo whole", options=options, stdin=bytes(4_000_000))
        relaying.join()
    assert cut.returncode == 255
    assert b"whole" not in cut.stdout
    assert ssh(key, "echo well").stdout == b"well\n"


def _copy(source: socket.socket, target: socket.socket, change_after: int | None = None) -> None:
    passed = 0
    with suppress(OSError):
        while data := source.recv(65536):
            passed += len(data)
            if change_after is not None and passed > change_after:
                data, change_after = bytes((data[0] ^ 1, *data[1:])), None
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
