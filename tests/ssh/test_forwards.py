"""Forwards reach ports and sockets of the computer, and nothing else."""

import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ssh.ssh_server import SSH_TIMEOUT, ClientKey, SshServerProcess, run_ssh, run_ssh_server
from tests.support.ports import free_ports

SERVE = (
    'python3 -c \'import http.server as h, sys; s = h.ThreadingHTTPServer(("127.0.0.1", 0), h.SimpleHTTPRequestHandler);'
    " print(s.server_port, flush=True); s.serve_forever()'"
)


@contextlib.contextmanager
def running(key: ClientKey, *options: str, command: str = "echo ready; cat") -> Iterator["subprocess.Popen[bytes]"]:
    """An ssh client that runs until the block ends; its first line was read."""
    argv = ["ssh", "-F", str(key.config), "-o", "ExitOnForwardFailure=yes", *options, "computer", command]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
        try:
            yield client
        finally:
            client.terminate()
            client.communicate(timeout=SSH_TIMEOUT)


def first_line(client: "subprocess.Popen[bytes]") -> str:
    assert client.stdout is not None
    assert client.stderr is not None
    line = client.stdout.readline().decode().strip()
    assert line, client.stderr.read()
    return line


def ask(connection: socket.socket, words: bytes = b"GET / HTTP/1.0\r\n\r\n") -> bytes:
    with connection:
        connection.settimeout(SSH_TIMEOUT)
        connection.sendall(words)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while part := connection.recv(65536):
            found += part
        return found


@pytest.fixture(scope="module")
def inside(key: ClientKey) -> Iterator[int]:
    """The port of a server in the computer."""
    with running(key, command=SERVE) as client:
        yield int(first_line(client))


@contextlib.contextmanager
def echo_here() -> Iterator[int]:
    """The port of a service on the machine of the client."""

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(b"from here: " + connection.recv(100))

    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, args=(listener,))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def test_a_server_in_the_computer_is_reached(key: ClientKey, inside: int) -> None:
    (port,) = free_ports(1)
    with running(key, "-L", f"{port}:localhost:{inside}") as client:
        first_line(client)
        for _ in range(5):
            assert b"200 OK" in ask(socket.create_connection(("127.0.0.1", port)))


def test_a_socks_client_reaches_only_the_computer(server: SshServerProcess, key: ClientKey, inside: int) -> None:
    (port,) = free_ports(1)

    def connect(host: bytes, to: int) -> int:
        with socket.create_connection(("127.0.0.1", port), timeout=SSH_TIMEOUT) as connection:
            connection.sendall(b"\x05\x01\x00")
            assert connection.recv(2) == b"\x05\x00"
            connection.sendall(b"\x05\x01\x00\x03" + bytes((len(host),)) + host + to.to_bytes(2, "big"))
            answer = connection.recv(10)
            if not answer or answer[1] != 0:
                return -1
            return len(ask(connection))

    with running(key, "-D", str(port)) as client:
        first_line(client)
        assert connect(b"localhost", inside) > 0
        # The server's own port is open on this machine's loopback, and is not the computer's.
        assert connect(b"127.0.0.1", server.port) == -1
        for host in (b"192.0.2.1", b"example.com", b"169.254.169.254", b"localhost.example.com", b"0.0.0.0"):
            assert connect(host, 80) == -1


def test_remote_forwards_reach_the_client(key: ClientKey) -> None:
    with echo_here() as port, running(key, "-R", f"0:127.0.0.1:{port}", "-v") as client:
        assert client.stderr is not None
        while True:
            line = client.stderr.readline()
            assert line
            if line.startswith(b"Allocated port "):
                chosen = int(line.split()[2])
                break
        script = f"exec 3<>/dev/tcp/127.0.0.1/{chosen}; printf hello >&3; cat <&3"
        assert run_ssh(key, script).stdout == b"from here: hello"
    freed = f"while (exec 3<>/dev/tcp/127.0.0.1/{chosen}) 2>/dev/null; do sleep 0.05; done; echo free"
    assert run_ssh(key, freed).stdout == b"free\n"


def test_sockets_are_forwarded_both_ways(key: ClientKey, inside: int, tmp_path: Path) -> None:
    relay = (
        "import socket,sys\n"
        "s=socket.socket(socket.AF_UNIX); s.bind('/tmp/app.sock'); s.listen(); print('ready', flush=True)\n"
        "while True:\n c,_=s.accept(); c.sendall(b'inside: '+c.recv(100)); c.close()\n"
    )
    here = tmp_path / "here.sock"
    with running(
        key, "-L", f"{here}:/tmp/app.sock", command=f'rm -f /tmp/app.sock; exec python3 -c "{relay}"'
    ) as client:
        first_line(client)
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(here))
        assert ask(connection, b"hi") == b"inside: hi"
    with echo_here() as port, running(key, "-R", f"/tmp/back.sock:127.0.0.1:{port}") as client:
        first_line(client)
        script = "import socket; s=socket.socket(socket.AF_UNIX); s.connect('/tmp/back.sock'); s.sendall(b'x'); print(s.recv(99).decode())"
        assert run_ssh(key, f'python3 -c "{script}"').stdout == b"from here: x\n"


def test_the_steps_of_vs_code_work(key: ClientKey, tmp_path: Path) -> None:
    """Upload a tar file, start a daemon that outlives its shell, and forward to its socket from another connection."""
    server = tmp_path / "server.py"
    server.write_text(
        "import os,socket\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "s=socket.socket(socket.AF_UNIX); s.bind(os.path.expanduser('~/.code.sock')); s.listen()\n"
        "open(os.path.expanduser('~/.code.pid'),'w').write(str(os.getpid()))\n"
        "while True:\n c,_=s.accept(); c.sendall(b'code '+c.recv(100)); c.close()\n"
    )
    packed = subprocess.run(
        ["tar", "-C", str(tmp_path), "-czf", "-", "server.py"], capture_output=True, check=True
    ).stdout
    run_ssh(key, "mkdir -p ~/.code && tar -C ~/.code -xzf -", stdin=packed, check=True)
    script = b"rm -f ~/.code.sock ~/.code.pid\nnohup python3 ~/.code/server.py >/dev/null 2>&1 </dev/null &\nwhile [ ! -s ~/.code.pid ]; do sleep 0.02; done; echo started\n"
    assert run_ssh(key, "bash", stdin=script).stdout == b"started\n"
    here = tmp_path / "code.sock"
    try:
        with running(key, "-L", f"{here}:/home/agent/.code.sock") as client:
            first_line(client)
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(str(here))
            assert ask(connection, b"1.0") == b"code 1.0"
    finally:
        run_ssh(key, "kill $(cat ~/.code.pid)")


def test_forwarding_can_be_disabled(tmp_path: Path) -> None:
    with run_ssh_server(tmp_path, forwarding=False) as server:
        key = server.issue()
        (port,) = free_ports(1)
        with running(key, "-L", f"{port}:localhost:1") as client:
            first_line(client)
            with contextlib.suppress(OSError):
                assert ask(socket.create_connection(("127.0.0.1", port))) == b""
        refused = run_ssh(key, "true", options=("-o", "ExitOnForwardFailure=yes", "-R", "0:localhost:1"))
        assert refused.returncode == 255
