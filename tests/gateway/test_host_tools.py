"""Host tools are made for the first agent that needs them: a gateway whose agents nobody uses has none in memory."""

from pathlib import Path

from tests.gateway.running_gateway import running_gateway

from freehold.agents.tools.server import HostToolServer
from freehold.computer.contract.conventions import HOST_TOOLS_PORT
from freehold.gateway.session_service import HostToolAccess


async def ask_nobody(_session: str, _request: object) -> None:
    return None


def test_tools_are_made_once_and_a_revocation_makes_none() -> None:
    made: list[HostToolServer] = []

    def load() -> HostToolServer:
        made.append(HostToolServer([], ask_nobody))
        return made[-1]

    access = HostToolAccess(load)
    access.revoke("s1")
    assert made == []
    token = access.server.token_for("s1")
    assert access.server.token_for("s1") == token
    access.revoke("s1")
    assert access.server.token_for("s1") != token
    assert len(made) == 1


async def test_the_command_for_programs_inside_is_written_with_the_tools_for_the_first_agent(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as gateway:
        services = gateway.context.services
        folder = services.home.agents / ".tools"
        assert not folder.exists()
        access = services.computer_access.port_handlers[HOST_TOOLS_PORT].__self__  # type: ignore[attr-defined]
        assert isinstance(access, HostToolAccess)
        names = {tool["name"] for tool in access.server.described}
        assert {"history_log", "run_code"} <= names
        assert (folder / "freehold").stat().st_mode & 0o111
        assert all(name in (folder / "tools.json").read_text() for name in names)
