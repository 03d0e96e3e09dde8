"""Apart on kernels that know less of it than this one."""

from pathlib import Path

import pytest

from freehold.computer import Computer
from freehold.computer.isolation import keeps_sessions_apart
from freehold.guest import domains, kernel
from freehold.guest.spawn import SpawnError

SOURCE = Path(kernel.__file__).read_text()
OLDER = """
import subprocess, tempfile
_FIRST_WITH_SCOPES = 99
other = subprocess.Popen(["sleep", "60"], env={"SECRET": "x"})
open(f"/proc/{other.pid}/environ").close()
set_apart(True)
for name in ("environ", "maps", "mem"):
    try:
        open(f"/proc/{other.pid}/{name}").close()
    except PermissionError:
        print("refused")
own = subprocess.Popen(["sleep", "60"])
open(f"/proc/{own.pid}/environ").close()
folder = tempfile.mkdtemp()
os.makedirs(f"{folder}/from")
os.makedirs(f"{folder}/to")
open(f"{folder}/from/file", "w").close()
os.link(f"{folder}/from/file", f"{folder}/to/link")
os.rename(f"{folder}/from/file", f"{folder}/to/file")
for child in (own, other):
    child.kill()
    child.wait()
print("moved")
"""


@pytest.mark.skipif(not keeps_sessions_apart(), reason="this kernel has no Landlock: freehold doctor says so")
async def test_without_scopes_what_is_read_is_apart_and_files_move_as_before() -> None:
    """Linux 5.19 to 6.11: the domain is about nothing but a right that is given everywhere."""
    async with Computer.start() as computer:
        ran = await computer.run(["/usr/bin/python3", "-c", SOURCE + OLDER], timeout=30)
    assert ran.text.split() == ["refused", "refused", "refused", "moved"], ran


def test_without_landlock_all_are_together_and_everything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domains, "can_set_apart", lambda: False)
    together = domains.Domains()
    assert together.within(b"one", lambda: 7) == 7
    assert together.within(domains.OWNER, lambda: 8) == 8


def test_where_a_domain_cannot_be_entered_nothing_starts_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails closed: what asked to be apart is never started together with others."""

    def fail(strictly: bool) -> None:
        if strictly:
            raise OSError("no more domains")

    monkeypatch.setattr(domains, "can_set_apart", lambda: True)
    monkeypatch.setattr(domains, "set_apart", fail)
    apart = domains.Domains()
    started: list[int] = []

    def start() -> int:
        started.append(1)
        return 1

    with pytest.raises(SpawnError, match="no more domains"):
        apart.within(b"one", start)
    assert started == []
    assert apart.within(domains.OWNER, lambda: 8) == 8
    apart._owner.leave()
