"""The secret of a webhook goes with its routine, whatever fails or is cut off meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from click.testing import CliRunner
from tests.agents.session_harness import SessionHarness

from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.routines.cli import command
from freehold.routines.section import RoutineSection
from freehold.routines.service import RoutineService
from freehold.routines.webhook import secret_name

HOOK = RoutineSection(webhook=True, command="true")


class FailingVault(Vault):
    """Its first removal fails, as on a disk that is full."""

    failed = False

    def remove(self, name: str) -> None:
        if not self.failed:
            self.failed = True
            raise FreeholdError("vault.busy.unavailable", "The vault cannot be written now")
        super().remove(name)


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[RoutineService]:
    """A service that does not run, whose manifest has no routine any more."""
    (tmp_path / "freehold.toml").write_text("")
    sessions = SessionHarness(None, tmp_path, 600.0)  # type: ignore[arg-type] # nothing here needs a computer
    async with asyncio.TaskGroup() as group:
        await sessions.start(group)
        yield RoutineService(sessions.sessions, {}, vault=FailingVault(tmp_path / "vault"))
        await sessions.stop()


def list_names(vault: Vault) -> list[str]:
    return [one.name for one in vault.list()]


async def test_a_secret_that_could_not_be_forgotten_at_first_is_forgotten_at_the_next_try(
    service: RoutineService, tmp_path: Path
) -> None:
    vault = Vault(tmp_path / "vault")
    vault.set(secret_name("deploy"), "whsec_x")
    service.routines.prepare()
    service.routines.adopt_manifest({"deploy": HOOK})
    with pytest.raises(FreeholdError):
        await service._prepare()
    assert list_names(vault) == ["routine.deploy"]
    await service._prepare()
    assert list_names(vault) == []
    assert service.routines.find("deploy") is None


def test_the_command_line_forgets_the_secret_before_the_routine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "freehold.toml").write_text('[routines.morning]\nwebhook = true\ncommand = "true"\n')

    def run(*words: str) -> BaseException | None:
        return CliRunner().invoke(command, [*words, "--home", str(tmp_path)]).exception

    vault = Vault(tmp_path / "vault")
    assert run("add", "deploy", "--webhook", "--command", "true") is None
    for name in ("deploy", "morning"):
        vault.set(secret_name(name), "whsec_x")
    with monkeypatch.context() as broken:
        broken.setattr("freehold.egress.vault.Vault", FailingVault)
        assert isinstance(run("remove", "deploy"), FreeholdError)
    assert run("remove", "deploy") is None
    assert isinstance(run("remove", "morning"), FreeholdError)
    assert list_names(vault) == ["routine.morning"]
