"""A small process that removes the container if the process that started it dies, however it dies.

An engine keeps its containers when its clients end. A computer must end with the keeper, even if that is killed.
"""

import subprocess
import sys

from freehold.computer.engine.api import EngineApi

# Waits for the end of its standard input, which the end of the keeper closes. An engine that restarts is waited for: only
# an answer that the container is gone, or is being removed (409), is the end.
_PROGRAM = """
import socket, sys, time
path, name = sys.argv[1:]
sys.stdin.read()
for _ in range(60):
    try:
        with socket.socket(socket.AF_UNIX) as engine:
            engine.settimeout(30)
            engine.connect(path)
            engine.sendall(f"DELETE /containers/{name}?force=1&v=1 HTTP/1.1\\r\\nHost: engine\\r\\nConnection: close\\r\\n\\r\\n".encode())
            with engine.makefile("rb") as answer:
                if answer.readline().split()[1:2] in ([b"200"], [b"204"], [b"404"], [b"409"]):
                    break
    except OSError:
        pass
    time.sleep(1)
"""


class OrphanedContainerGuard:
    """Runs from before the container is created until `close`."""

    def __init__(self, api: EngineApi, name: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PROGRAM, str(api.path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        """End it: who started the container has ended it. Idempotent."""
        self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
