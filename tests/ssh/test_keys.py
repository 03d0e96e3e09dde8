"""Which keys are accepted and which are refused."""

import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.ssh.ssh_server import SSH_TIMEOUT, ClientKey, SshServerProcess, run_ssh, run_ssh_server
from tests.support.condition import wait_until

from freehold.errors import FreeholdError
from freehold.identity.tokens import ApiTokens
from freehold.manifest import Manifest
from freehold.ssh.authority import CLOCK_LEEWAY, CertificateAuthority, make_key_pair, read_public_key
from freehold.ssh.credential_issuer import CredentialIssuer, CredentialRequester
from freehold.ssh.credentials import MAX_ACTIVE, CredentialStore
from freehold.ssh.keys import authority_path, ensure_keys, fingerprint, host_key_path, read_private, read_public
from freehold.ssh.server import REVOCATION_POLL_INTERVAL
from freehold.timeline import Timeline

ISSUED = CredentialRequester("local", "owner", "127.0.0.1")


def sign_with_ssh_keygen(
    server: SshServerProcess, *options: str, authority: Path | None = None, recorded: bool = True
) -> ClientKey:
    """A certificate made by ssh-keygen, with fields that ours never have."""
    folder = server.make_client_folder()
    subprocess.run(
        ["ssh-keygen", "-q", "-s", str(authority or authority_path(server.home)), "-I", "x", "-z", "77", *options, str(folder / "id.pub")],
        check=True,
        capture_output=True,
    )  # fmt: skip
    if recorded:
        with Timeline(server.home.timeline) as timeline:
            CredentialStore(timeline).add(
                "certificate",
                (folder / "id.pub").read_text(),
                key_id="x",
                source="local",
                address="127.0.0.1",
                expires=time.time() + 3600,
                who="owner",
                serial=77,
            )
    return ClientKey(server.write_client_config(folder), "")


def test_a_valid_certificate_made_by_ssh_keygen_is_accepted(server: SshServerProcess) -> None:
    """Shows that the refusals below have the reason that they name."""
    assert run_ssh(sign_with_ssh_keygen(server, "-n", "agent", "-V", "-1m:+1h"), "true").returncode == 0


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
def test_an_invalid_certificate_is_refused(server: SshServerProcess, options: tuple[str, ...]) -> None:
    refused = run_ssh(sign_with_ssh_keygen(server, *options), "true")
    assert refused.returncode == 255
    assert b"Permission denied" in refused.stderr


def test_a_certificate_of_another_authority_is_refused(server: SshServerProcess) -> None:
    other = server.make_client_folder() / "id"
    assert (
        run_ssh(sign_with_ssh_keygen(server, "-n", "agent", "-V", "-1m:+1h", authority=other), "true").returncode == 255
    )


def test_a_certificate_that_was_never_recorded_is_refused(server: SshServerProcess) -> None:
    """Even with the signature of the authority."""
    assert (
        run_ssh(sign_with_ssh_keygen(server, "-n", "agent", "-V", "-1m:+1h", recorded=False), "true").returncode == 255
    )


def test_a_bare_key_of_the_same_pair_is_refused(server: SshServerProcess, key: ClientKey) -> None:
    folder = server.make_client_folder()
    for name in ("id", "id.pub"):
        (folder / name).write_bytes((key.config.parent / name).read_bytes())
    assert run_ssh(ClientKey(server.write_client_config(folder), ""), "true").returncode == 255


def test_other_names_than_agent_are_refused(key: ClientKey) -> None:
    for name in ("root", "Agent", "owner", ""):
        assert run_ssh(key, "true", options=("-l", name)).returncode == 255


def test_a_revoked_certificate_is_refused_with_a_hint(server: SshServerProcess) -> None:
    key = server.issue()
    assert run_ssh(key, "true").returncode == 0
    server.revoke(key)
    refused = run_ssh(key, "true", options=("-o", "LogLevel=INFO"))
    assert refused.returncode == 255
    assert b"expired or was revoked" in refused.stderr


HOLD = "setsid sleep 5599 & while ! pgrep -f '[s]leep 5599' > /dev/null; do sleep 0.02; done; echo begun; exec cat"


def hold_connection(key: ClientKey) -> "subprocess.Popen[bytes]":
    argv = ["ssh", "-F", str(key.config), "computer", HOLD]
    client = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert client.stdout is not None
    assert client.stdout.readline() == b"begun\n"
    return client


def assert_ends(client: "subprocess.Popen[bytes]", end: Callable[[], object]) -> None:
    with client:
        assert client.poll() is None
        end()
        assert client.wait(timeout=SSH_TIMEOUT) == 255


def test_revoking_a_key_ends_its_connections_and_what_they_run(server: SshServerProcess, key: ClientKey) -> None:
    revoked = server.issue()
    assert_ends(hold_connection(revoked), lambda: server.revoke(revoked))
    gone = "while pgrep -f '[s]leep 5599' > /dev/null; do sleep 0.05; done; echo gone"
    assert run_ssh(key, gone).stdout == b"gone\n"


def test_signing_out_ends_its_connections(server: SshServerProcess) -> None:
    with server.sign_ins() as sign_ins:
        sign_in, _ = sign_ins.create(None, label="test", address="127.0.0.1", method="link")
        key = server.issue(requester=CredentialRequester(f"session:{sign_in.id}", "owner", "127.0.0.1"))
        assert_ends(hold_connection(key), lambda: sign_ins.revoke(sign_in.id))
    assert run_ssh(key, "true").returncode == 255


def test_revoking_a_token_ends_its_connections(server: SshServerProcess) -> None:
    with ApiTokens(server.home.identity) as tokens:
        token, _ = tokens.create("machine", ["admin"], None)
        key = server.issue(requester=CredentialRequester(f"token:{token.id}", "token:machine", "127.0.0.1"))
        assert_ends(hold_connection(key), lambda: tokens.revoke("machine"))
    assert run_ssh(key, "true").returncode == 255


def test_revocations_are_looked_for_several_times_a_second() -> None:
    """Connections of a revoked key or sign-in end within a second, unless the machine is overloaded."""
    assert REVOCATION_POLL_INTERVAL <= 0.25


def test_a_connection_ends_with_its_certificate(server: SshServerProcess) -> None:
    """It expires once the connection is there, however long that took."""
    key = server.issue(seconds=600)

    def expire() -> None:
        with Timeline(server.home.timeline) as timeline, timeline.transaction() as tx:
            tx.execute("UPDATE ssh_credential SET expires = ? WHERE id = ?", (time.time(), key.credential))

    assert_ends(hold_connection(key), expire)


def test_a_certificate_of_an_unknown_sign_in_is_refused(server: SshServerProcess) -> None:
    for source in ("session:0123", "token:0123", "", "root"):
        assert (
            run_ssh(server.issue(requester=CredentialRequester(source, "owner", "127.0.0.1")), "true").returncode == 255
        )


def test_a_key_made_in_the_computer_is_refused(server: SshServerProcess, key: ClientKey) -> None:
    """Not with authorized_keys, not signed by itself, and the computer cannot reach the port."""
    made = run_ssh(
        key,
        "mkdir -p ~/.ssh && cd ~/.ssh && rm -f id ca && ssh-keygen -q -t ed25519 -N '' -f id && ssh-keygen -q -t ed25519 -N '' -f ca"
        " && cat id.pub ca.pub > authorized_keys && ssh-keygen -q -s ca -I x -n agent id.pub && tar -cf - id id.pub id-cert.pub",
    )
    assert made.returncode == 0, made.stderr
    folder = server.make_client_folder()
    for name in ("id", "id.pub"):
        (folder / name).unlink()
    subprocess.run(["tar", "-C", str(folder), "-xf", "-"], input=made.stdout, check=True)
    assert run_ssh(ClientKey(server.write_client_config(folder), ""), "true").returncode == 255
    (folder / "id-cert.pub").unlink()
    assert run_ssh(ClientKey(server.write_client_config(folder), ""), "true").returncode == 255
    reached = run_ssh(key, f"exec 3<>/dev/tcp/127.0.0.1/{server.port} && head -c 4 <&3")
    assert reached.stdout == b""
    found = run_ssh(
        key,
        f"ls {server.home.vault} {server.home.root} 2>&1; grep -rl 'OPENSSH PRIVATE' /home /workspace /tmp /run /etc /var 2>/dev/null",
    )
    assert b"authority" not in found.stdout
    assert set(found.stdout.decode().split()) & {"/home/agent/.ssh/id", "/home/agent/.ssh/ca"}
    assert not [
        path for path in found.stdout.decode().split() if path.startswith(("/run", "/etc", "/var", "/workspace"))
    ]


@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_a_key_pair_for_an_old_client_works_without_a_certificate(server: SshServerProcess, kind: str) -> None:
    with Timeline(server.home.timeline) as timeline:
        issuer = CredentialIssuer(server.home, Manifest(), CredentialStore(timeline))
        issued = issuer.issue_key_pair(ISSUED, kind)  # type: ignore[arg-type]
        folder = server.make_client_folder()
        (folder / "id").write_text(issued.key_pair.private_key)
        (folder / "id.pub").unlink()
        key = ClientKey(server.write_client_config(folder), issued.credential.id)
        assert run_ssh(key, "echo in").stdout == b"in\n"
        kept = [path for path in server.home.root.rglob("*") if path.is_file() and folder not in path.parents]
        secret = issued.key_pair.private_key.splitlines()[3].encode()
        assert not [path for path in kept if secret in path.read_bytes()]
    assert_ends(hold_connection(key), lambda: server.revoke(key))
    assert run_ssh(key, "true").returncode == 255


def test_a_certificate_has_the_required_fields(server: SshServerProcess) -> None:
    folder = server.make_client_folder()
    made = CertificateAuthority(server.home).sign(
        (folder / "id.pub").read_text(), key_id="did:plc:abc session:77", lifetime=10**9, forwarding=False
    )
    assert made.valid_before - made.valid_after == 86_400 + CLOCK_LEEWAY
    (folder / "id-cert.pub").write_text(made.text)
    shown = subprocess.run(
        ["ssh-keygen", "-L", "-f", str(folder / "id-cert.pub")], capture_output=True, text=True, check=True
    ).stdout
    assert "did:plc:abc session:77" in shown
    assert "permit-pty" in shown
    assert not [word for word in ("agent-forwarding", "X11", "port-forwarding", "user-rc") if word in shown]
    assert fingerprint(read_public(authority_path(server.home))) in shown


def test_a_certificate_without_the_permission_cannot_forward(server: SshServerProcess) -> None:
    key = server.issue(manifest=Manifest.model_validate({"ssh": {"forwarding": False}}))
    refused = run_ssh(key, "true", options=("-o", "ExitOnForwardFailure=yes", "-R", "0:localhost:1"))
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
def test_an_invalid_public_key_is_explained(line: str) -> None:
    with pytest.raises(FreeholdError) as caught:
        read_public_key(line)
    assert caught.value.code in ("ssh.bad-key", "ssh.weak-key")
    assert caught.value.hint


def test_short_rsa_keys_are_refused(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", str(tmp_path / "id")], check=True)
    with pytest.raises(FreeholdError, match="2048"):
        read_public_key((tmp_path / "id.pub").read_text())


def test_keys_are_created_once_and_are_private(tmp_path: Path) -> None:
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
    with pytest.raises(FreeholdError, match="read by other users"):
        ensure_keys(home)


def test_the_host_key_stays_the_same_across_restarts(tmp_path: Path) -> None:
    shown = []
    for _ in range(2):
        with run_ssh_server(tmp_path) as server:
            argv = ["ssh-keyscan", "-t", "ed25519", "-p", str(server.port), "127.0.0.1"]
            shown.append(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()[1:])
            key = server.issue()
            assert run_ssh(key, "true").returncode == 0
    assert shown[0] == shown[1]


def test_the_number_of_active_keys_is_bounded(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        credentials = CredentialStore(timeline)
        public = make_key_pair().public_key

        def add() -> None:
            credentials.add("key", public, key_id="", source="local", address="", expires=time.time() + 60, who="owner")

        for _ in range(MAX_ACTIVE):
            add()
        with pytest.raises(FreeholdError, match=str(MAX_ACTIVE)):
            add()
        credentials.revoke(credentials.list()[0].id, who="owner")
        add()


def test_the_last_use_is_recorded(server: SshServerProcess) -> None:
    key = server.issue()
    run_ssh(key, "true", check=True)
    with Timeline(server.home.timeline) as timeline:
        credentials = CredentialStore(timeline)
        wait_until(lambda: (found := credentials.get(key.credential)) is not None and found.used is not None)
        found = credentials.get(key.credential)
    assert found is not None
    assert found.used_from == "127.0.0.1"


def test_the_port_sends_only_its_version_to_strangers(server: SshServerProcess) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=SSH_TIMEOUT) as stranger:
        assert stranger.recv(100).startswith(b"SSH-2.0-Freehold_")
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while stranger.recv(1000):
            continue


def test_a_server_that_stops_ends_all_connections(tmp_path: Path) -> None:
    with run_ssh_server(tmp_path) as server:
        client = hold_connection(server.issue())
    with client:
        assert client.wait(timeout=SSH_TIMEOUT) == 255


def test_a_changed_byte_ends_only_its_connection(server: SshServerProcess, key: ClientKey) -> None:
    """During a transfer, where packets take the fast path."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def relay() -> None:
            here, _ = listener.accept()
            there = socket.create_connection(("127.0.0.1", server.port))
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
        cut = run_ssh(key, "cat > /dev/null; echo whole", options=options, stdin=bytes(4_000_000))
        relaying.join()
    assert cut.returncode == 255
    assert b"whole" not in cut.stdout
    assert run_ssh(key, "echo well").stdout == b"well\n"


def _copy(source: socket.socket, target: socket.socket, change_after: int | None = None) -> None:
    passed = 0
    with suppress(OSError):
        while data := source.recv(65536):
            passed += len(data)
            if change_after is not None and passed > change_after:
                data, change_after = bytes((data[0] ^ 1, *data[1:])), None
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
