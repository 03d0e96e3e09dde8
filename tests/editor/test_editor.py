"""The editor's walls. A small server with code-server's options stands in for it here: test_code_server has the real one."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.gateway.preview_harness import PORT, PreviewHarness, RawAnswer, SignedInBrowser, running_previews
from tests.support.condition import until

from freehold.computer.contract.conventions import WORKSPACE
from freehold.editor.exception import EDITOR_PORT
from freehold.editor.service import add_password
from freehold.manifest import load_manifest

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
STAND_IN = Path(__file__).parent / "stand_in.py"
SECTION = f"""
[editor]
enabled = true
program = "{WORKSPACE}/stand_in"
"""
GRANTED = '[security.exceptions.editor]\nreason = "I edit in the browser"\n'


class Editor:
    """The owner's browser and the editor in it."""

    def __init__(self, previews: PreviewHarness) -> None:
        self.previews = previews
        self.gateway = previews.gateway
        self.computer = previews.computer
        self.browser: SignedInBrowser = previews.browser()

    @property
    def host(self) -> str:
        return f"editor.preview.localhost:{self.gateway.port}"

    async def ask(self, what: str) -> tuple[int, dict[str, object]]:
        answer = await self.gateway.http.post(f"/v1/preview/sites/editor/{what}", headers=self.browser.headers)
        return answer.status_code, answer.json()

    async def enter(self) -> str:
        """Opens it, and returns the pass as a cookie."""
        status, answer = await self.ask("open")
        assert status == 200, answer
        address = str(answer["address"])
        assert address.startswith(f"http://{self.host}/")
        entered = await self.get(address.removeprefix(f"http://{self.host}"))
        assert entered.status == 303
        return entered.values("set-cookie")[0].partition(";")[0]

    async def get(self, path: str, **fields: Any) -> RawAnswer:
        return await self.previews.request("GET", path, **{"host": self.host, **fields})

    async def is_running(self) -> bool:
        answer = await self.gateway.http.get("/v1/preview/sites", headers=self.browser.headers)
        return bool({one["name"]: one["running"] for one in answer.json()["sites"]}["editor"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    root = tmp_path_factory.mktemp("editor")
    (root / "workspace").mkdir(mode=0o700)
    program = root / "workspace/stand_in"
    program.write_text(STAND_IN.read_text())
    program.chmod(0o755)
    async with running_previews(root, f'{SECTION}idle = "1h"\n{GRANTED}') as previews:
        yield Editor(previews)


async def test_it_starts_when_the_owner_opens_it_shows_the_workspace_and_stops(editor: Editor) -> None:
    assert not await editor.is_running()
    entered = await editor.enter()
    assert await editor.is_running()
    page = await editor.get("/", cookie=entered)
    assert page.status == 200
    assert b"stand_in" in page.body
    status, stopped = await editor.ask("stop")
    assert (status, stopped["running"]) == (200, False)
    await until(lambda: _is_free(editor))
    # The pass holds: the next request starts it again.
    assert (await editor.get("/", cookie=entered)).status == 200


async def _is_free(editor: Editor) -> bool:
    return not any(one.port == EDITOR_PORT for one in await editor.computer.listening_sockets())


async def test_nobody_else_gets_in_by_the_front(editor: Editor) -> None:
    """Strangers, tokens, and pages that agents serve on ports, which are sibling hosts in the same partition."""
    entered = await editor.enter()
    assert (await editor.get("/")).status == 401
    token = editor.gateway.token("read", "admin", "terminal")
    assert (await editor.get("/", **token)).status == 401
    sibling = f"http://{editor.previews.host(PORT)}"
    assert (await editor.get("/", cookie=entered, origin=sibling)).status == 403
    assert (await editor.get("/", cookie=entered, origin=editor.gateway.origin)).status == 403
    assert (await editor.get("/", cookie=entered, origin=f"http://{editor.host}")).status == 200
    other = await editor.previews.open_preview(editor.browser)
    assert (await editor.get("/", cookie=other)).status == 401
    assert (await editor.previews.request("GET", "/", cookie=entered)).status == 401
    # A name that no feature has is no site at all.
    assert (
        await editor.previews.request("GET", "/", host=f"other.preview.localhost:{editor.gateway.port}")
    ).status == 421


async def test_agents_get_in_neither_by_loopback_nor_by_its_process(editor: Editor) -> None:
    entered = await editor.enter()
    ask = f"curl -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1:{EDITOR_PORT}/"
    assert (await editor.computer.run(ask, apart="s1")).text == "401"
    assert (await editor.computer.run(f"{ask} -H 'Cookie: {entered}'", apart="s1")).text == "401"
    inside = (await editor.computer.run("pgrep -f [s]tand_in | head -1")).text.strip()
    for attempt in (f"cat /proc/{inside}/environ", f"cat /proc/{inside}/mem", f"kill -9 {inside}"):
        assert not (await editor.computer.run(attempt, apart="s1")).ok, attempt
    told = (await editor.computer.run(f"tr '\\0' '\\n' < /proc/{inside}/cmdline")).text
    look = f"tr '\\0' '\\n' < /proc/{inside}/environ | grep PASSWORD"
    secret = (await editor.computer.run(look, apart="editor")).text.strip()
    assert len(secret.partition("=")[2]) == 64
    assert secret.partition("=")[2] not in told
    shown = await editor.get("/", cookie=entered)
    assert secret.partition("=")[2] not in str(shown)


async def test_its_page_connects_to_itself_alone_and_no_other_page_frames_it(editor: Editor) -> None:
    entered = await editor.enter()
    page = await editor.get("/", cookie=entered)
    policies = " | ".join(page.values("content-security-policy"))
    assert "connect-src 'self';" in policies
    assert f"frame-ancestors 'self' {editor.gateway.origin}" in policies
    assert (await editor.get("/sw.js", cookie=entered, service_worker="script")).status == 403


async def test_a_program_that_has_taken_its_port_is_not_shown_as_the_editor(editor: Editor) -> None:
    """The attack: an agent listens first, to show the owner an editor of its own."""
    await editor.ask("stop")
    await until(lambda: _is_free(editor))
    fake = f"exec python3 -m http.server {EDITOR_PORT} --bind 127.0.0.1"
    thief = await editor.computer.spawn(fake, apart="s1")
    async with thief:

        async def is_taken() -> bool:
            return not await _is_free(editor)

        await until(is_taken)
        status, answer = await editor.ask("open")
        assert status == 500
        assert "Another program in the computer listens" in str(answer)
        thief.kill()
        await thief.wait()
    await until(lambda: _is_free(editor))
    assert (await editor.ask("open"))[0] == 200


async def test_a_planted_cookie_does_not_replace_the_password() -> None:
    given = [(b"host", b"x"), (b"cookie", b"a=1; code-server-session=planted; b=2")]
    assert add_password(given, "code-server-session=real") == [
        (b"host", b"x"),
        (b"cookie", b"a=1; b=2; code-server-session=real"),
    ]


async def test_it_is_off_unless_granted_and_its_settings_are_checked(tmp_path: Path, editor: Editor) -> None:
    def codes(text: str) -> list[str]:
        (tmp_path / "freehold.toml").write_text(text)
        return [one.code for one in load_manifest(tmp_path / "freehold.toml", {}, home=tmp_path).errors]

    assert codes(SECTION) == ["E901"]
    assert codes(SECTION + GRANTED) == []
    service = f'[computer.services.web]\ncommand = "true"\nport = {EDITOR_PORT}\n'
    assert codes(SECTION + GRANTED + service) == ["E926"]
    assert codes(f'[editor]\nenabled = true\nprogram = "code-server"\n{GRANTED}') == ["E926"]
    # The desktop of this Freehold is off.
    answer = await editor.gateway.http.post("/v1/preview/sites/desktop/open", headers=editor.browser.headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "desktop.disabled")
    answer = await editor.gateway.http.post("/v1/preview/sites/other/open", headers=editor.browser.headers)
    assert answer.status_code == 404


async def test_it_ends_when_idle(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir(mode=0o700)
    program = tmp_path / "workspace/stand_in"
    program.write_text(STAND_IN.read_text())
    program.chmod(0o755)
    async with running_previews(tmp_path, f'{SECTION}idle = "1s"\n{GRANTED}') as previews:
        editor = Editor(previews)
        await editor.enter()
        await until(lambda: _is_free(editor))
