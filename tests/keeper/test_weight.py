"""What the keeper has not loaded: it runs for as long as the machine does."""

import subprocess
import sys

HEAVY = (
    "asyncssh",
    "cryptography",
    "fastapi",
    "httpx2",
    "opentelemetry",
    "pydantic",
    "websockets",
    "freehold.agents",
    "freehold.computer.engine",
    "freehold.computer.escapes",
    "freehold.computer.isolates",
    "freehold.computer.microvm",
    "freehold.doctor",
    "freehold.egress",
    "freehold.gateway",
    "freehold.manifest",
    "freehold.ssh.server",
)


def test_the_keeper_loads_only_what_it_needs() -> None:
    """Reading the manifest needs much more, and is done by a process that ends."""
    script = (
        "import sys\n"
        "import freehold.cli.main, freehold.cli.up, freehold.keeper.runner, freehold.keeper.keeper\n"
        "import freehold.keeper.page.server, freehold.history.history, freehold.history.service\n"
        "import freehold.computer.bubblewrap.backend, freehold.computer.library.launch\n"
        "import freehold.computer.library.use_server, freehold.identity.sign_ins\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
