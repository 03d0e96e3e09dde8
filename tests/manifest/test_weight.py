"""Reading the manifest imports nothing heavy: of a feature only its declaration and its section."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
import hashlib, json, re, shlex, tomllib, typing, datetime, difflib, pathlib, pydantic
class Something(pydantic.BaseModel):
    number: int = 1
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
before, known = resident(), set(sys.modules)
from pathlib import Path
from freehold.manifest import load_manifest
grown, new = resident() - before, set(sys.modules) - known
load_manifest(Path("/nowhere/freehold.toml"), {"PATH": "/usr/bin:/bin"})
print(grown, *sorted(name for name in new if name.split(".")[0] in {"tomlkit", "click", "fastapi", "hypothesis", "idna"}
      or name.startswith("freehold.") and not name.startswith(("freehold.manifest", "freehold.errors", "freehold.features"))
      and name.count(".") > 1 and not name.endswith((".feature", ".section")) and name + ".feature" not in new
      or name.startswith("freehold.manifest.checks")))
"""


def test_importing_the_manifest_brings_nothing_heavy(tmp_path: Path) -> None:
    """The second time, as everywhere but right after the installation: what compiles a module is not what it weighs."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = kept | {"PYTHONPYCACHEPREFIX": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
    grown, *modules = done.stdout.split()
    assert modules == []
    assert int(grown) < 4 * 1024**2
