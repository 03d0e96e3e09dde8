"""Machines join with a code that works once. Whoever has none, an old one, or another version is refused."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.ports import free_ports

from freehold.errors import FreeholdError
from freehold.fleet import join_door, join_request, ray_inside
from freehold.fleet.certificates import make_own_pair, pinned_context
from freehold.fleet.fleet_folder import FleetFolder, KnownNode
from freehold.fleet.join_code import JoinCode, read_join_code
from freehold.fleet.join_door import JoinDoor
from freehold.fleet.join_request import NodeOffer, join_fleet
from freehold.fleet.node_folder import read_settings

OFFER = NodeOffer("shed", "127.0.0.3", 7870, 0)


class Head:
    def __init__(self, folder: Path) -> None:
        self.folder = FleetFolder(folder / "fleet")
        self.joined: list[KnownNode] = []
        (port,) = free_ports(1)
        self.door = JoinDoor(self.folder, "127.0.0.1", port, port + 1, self.joined.append)

    def code(self) -> JoinCode:
        return read_join_code(self.door.make_code())


@pytest.fixture
async def head(tmp_path: Path) -> AsyncIterator[Head]:
    found = Head(tmp_path)
    async with found.door.serve():
        yield found


async def refused(code: JoinCode, folder: Path, offer: NodeOffer = OFFER) -> FreeholdError:
    with pytest.raises(FreeholdError) as caught:
        await join_fleet(code, offer, folder)
    return caught.value


async def test_a_node_joins_and_has_no_key_of_the_head(head: Head, tmp_path: Path) -> None:
    await join_fleet(head.code(), OFFER, tmp_path / "node")
    settings = read_settings(tmp_path / "node")
    assert [node.name for node in head.joined] == ["shed"]
    assert head.folder.read_nodes()["shed"].certificate == settings.own.certificate
    kept = (tmp_path / "node" / "node.json").read_text()
    assert (tmp_path / "node" / "node.json").stat().st_mode & 0o777 == 0o600
    for secret in (head.folder.read_head().key, head.folder.read_authority().key):
        assert secret.splitlines()[1] not in kept
    assert "PRIVATE" not in (head.folder.root / "nodes.json").read_text()


async def test_a_code_works_once(head: Head, tmp_path: Path) -> None:
    code = head.code()
    await join_fleet(code, OFFER, tmp_path / "node")
    assert (await refused(code, tmp_path / "other")).code == "fleet.code-expired"


async def test_a_guessed_code_is_refused(head: Head, tmp_path: Path) -> None:
    code = head.code()
    guess = JoinCode(code.host, code.port, code.head, "0" * 32)
    assert (await refused(guess, tmp_path)).code == "fleet.code-expired"
    assert head.joined == []


async def test_the_secret_is_not_told_to_another_head(head: Head, tmp_path: Path) -> None:
    """Whoever answers at the address of the head must have its key."""
    code = head.code()
    wrong = JoinCode(code.host, code.port, "0" * 32, code.secret)
    assert (await refused(wrong, tmp_path)).code == "fleet.not-ours"
    await join_fleet(code, OFFER, tmp_path / "node")  # the code was not used up


async def test_another_version_is_refused_with_a_word(
    head: Head, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_request, "read_versions", lambda: {"freehold": "0.0.9", "ray": "2.1", "python": "3.9"})
    error = await refused(head.code(), tmp_path)
    assert error.code == "fleet.wrong-version"
    assert "freehold 0.0.9 instead of" in error.message


async def test_another_machine_cannot_take_the_name_of_a_node(head: Head, tmp_path: Path) -> None:
    await join_fleet(head.code(), OFFER, tmp_path / "node")
    assert (await refused(head.code(), tmp_path / "thief")).code == "fleet.name-taken"


@pytest.mark.parametrize(
    "offer",
    [
        NodeOffer("../x", "127.0.0.3", 1, 0),
        NodeOffer("shed", "nowhere", 1, 0),
        NodeOffer("shed", "0.0.0.0", 1, 0),
        NodeOffer("shed", "ff02::1", 1, 0),
        NodeOffer("shed", "127.0.0.3", 70000, 0),
        NodeOffer("shed", "127.0.0.3", 1, 0, labels={"freehold-node": "other"}),
        NodeOffer("shed", "127.0.0.3", 1, 0, labels={"a,b": "c"}),
    ],
)
async def test_bad_offers_are_refused(head: Head, tmp_path: Path, offer: NodeOffer) -> None:
    assert (await refused(head.code(), tmp_path, offer)).code.startswith("fleet.bad-")
    assert head.joined == []


async def test_whoever_connects_and_says_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else a stranger could hold as many connections as a process may have, and the head could reach no node."""
    monkeypatch.setattr(join_door, "REPLY_TIMEOUT", 0.05)
    monkeypatch.setattr("asyncio.constants.SSL_HANDSHAKE_TIMEOUT", 3600.0)
    head = Head(tmp_path)
    async with head.door.serve():
        code = read_join_code(head.door.make_code())
        reader, writer = await asyncio.open_connection(code.host, code.port)
        assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize("words", ["", "x", "10.0.0.5:7810", "host:1/aa/bb", f"10.0.0.5:1/{'0' * 32}/short"])
def test_what_is_no_code_is_refused(words: str) -> None:
    with pytest.raises(FreeholdError, match="not a code"):
        read_join_code(words)


async def test_only_the_pinned_certificate_is_talked_to() -> None:
    """A third key is refused on both sides, though it is as good a key as any."""
    one, other, third = (make_own_pair(name) for name in ("one", "other", "third"))

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=pinned_context(one, other.certificate, server=True))
    port = server.sockets[0].getsockname()[1]

    async def hear(own: object, peer: str) -> bytes:
        context = pinned_context(own, peer, server=False)  # type: ignore[arg-type]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        try:
            assert writer.get_extra_info("ssl_object").version() == "TLSv1.3"
            return await reader.read(5)
        finally:
            writer.transport.abort()

    async with server:
        assert await hear(other, one.certificate) == b"hello"
        for own, peer in ((third, one.certificate), (other, third.certificate)):
            heard = b""
            with contextlib.suppress(OSError):
                heard = await hear(own, peer)
            assert heard == b""


@pytest.mark.parametrize("missing", [*ray_inside.NEEDED, "RAY_AUTH_MODE", "RAY_USE_TLS"])
def test_ray_is_not_started_in_the_open(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its token, or one of its certificates, its program ends before it starts anything."""
    for name in ray_inside.NEEDED:
        (tmp_path / name).touch()
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_USE_TLS", "1")
    ray_inside.check_environment()
    monkeypatch.delenv(missing)
    with pytest.raises(SystemExit, match="not started in the open"):
        ray_inside.check_environment()
