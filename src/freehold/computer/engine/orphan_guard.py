"""A small process that removes the container if the process that started it dies, however it dies.

An engine keeps its containers when its clients end. A computer must end with the keeper, even if that is killed.
"""

import subprocess
import sys

from freehold.computer.engine.api import EngineApi

# Waits for the end of its standard input, which the end of the keeper closes.
_PROGRAM = """
import socket, sys
path, name = sys.argv[1:]
sys.stdin.read()
for _ in range(3):
    try:
        with socket.socket(socket.AF_UNIX) as engine:
            engine.settimeout(30)
            engine.connect(path)
            engine.sendall(f"DELETE /containers/{name}?force=1&v=1 HTTP/1.1\\r\\nHost: engine\\r\\nConnection: close\\r\\n\\r\\n".encode())
            if engine.recv(4096):
                break
    except OSError:
        continue
"""


class OrphanedContainerGuard:
    """Runs from before the container is created until `close`, which also removes what is left of the container."""

    def __init__(self, api: EngineApi, name: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PROGRAM, str(api.path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        """Let it do its work now, and wait for it. Idempotent."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
