"""Starts and stops the real PDS and PLC directory of `localnet.mjs`."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.e2e.atproto.certificates import Certificates
from tests.support.freehold import PROCESS_TIMEOUT

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
PASSWORD = "correct horse battery staple"


@dataclass(frozen=True)
class LocalNetwork:
    process: subprocess.Popen[str]
    pds_port: int
    directory_port: int
    tls_port: int | None
    folder: Path
    dids: dict[str, str]

    def advance(self, seconds: int) -> None:
        """Move the clock of PDS and directory."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps({"advance": seconds}), file=self.process.stdin, flush=True)
        assert json.loads(self.process.stdout.readline())


@cache
def _installed() -> tuple[Path, Path]:
    """The folder of the PDS and the Node that runs it. The first call installs them, which takes a minute or two."""
    folder = subprocess.run([REPOSITORY / "tools" / "install-pds"], check=True, stdout=subprocess.PIPE, text=True)
    node = subprocess.run([REPOSITORY / "tools" / "node-path"], check=True, stdout=subprocess.PIPE, text=True)
    return Path(folder.stdout.strip()), Path(node.stdout.strip()) / "node"


@contextmanager
def local_network(
    folder: Path,
    handles: list[str],
    *,
    hostname: str = "localhost",
    certificates: Certificates | None = None,
    routes: dict[str, int] | None = None,
) -> Iterator[LocalNetwork]:
    """http on localhost without certificates; with certificates, https with the host names of `routes`."""
    modules, node = _installed()
    config: dict[str, Any] = {
        "hostname": hostname,
        "folder": str(folder),
        "routes": routes or {},
        "accounts": [
            {"handle": handle, "email": f"{handle.split('.')[0]}@mail.test", "password": PASSWORD} for handle in handles
        ],
    }
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    if certificates is not None:
        config["tls"] = {"key": str(certificates.key), "cert": str(certificates.certificate)}
        environment["NODE_EXTRA_CA_CERTS"] = str(certificates.authority)
    folder.mkdir(parents=True, exist_ok=True)
    source = (HERE / "localnet.mjs").read_text()
    with subprocess.Popen(
        [node, "--input-type=module", "--eval", source, "--", json.dumps(config)],
        cwd=modules,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            ready = json.loads(process.stdout.readline())
            yield LocalNetwork(
                process=process,
                pds_port=ready["pdsPort"],
                directory_port=ready["directoryPort"],
                tls_port=ready["tlsPort"],
                folder=folder,
                dids={account["handle"]: account["did"] for account in ready["accounts"]},
            )
        finally:
            process.stdin.close()
            process.wait(timeout=PROCESS_TIMEOUT)
