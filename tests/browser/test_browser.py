"""Agents use a real Chromium in a computer of its own. What it must not open is tried here, by pages and by sessions."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import pytest
import pytest_asyncio
from tests.egress.proxy_harness import FakeServer, RunningProxy, run_proxy, run_server
from tests.support.condition import DEADLINE, until

from freehold.agents.sessions.approval_store import PermissionAnswer
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.tools.tool import ToolAnswer, ToolCaller
from freehold.browser.browsers import Browsers, name_computer
from freehold.browser.exception import MAX_BROWSERS
from freehold.browser.own_servers import OwnServers
from freehold.browser.page import KEYS as PAGE_KEYS
from freehold.browser.page import NO_SITE, find_site
from freehold.browser.section import BrowserSection
from freehold.browser.tools import KEYS, make_browser_tools
from freehold.computer import Computer, Limits
from freehold.computer.contract.conventions import EGRESS_PORT, RESERVED_PORTS
from freehold.computer.library.tunnel import Tunnel
from freehold.errors import FreeholdError

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

SERVE = "import http.server as h\nh.test(h.SimpleHTTPRequestHandler, port={port}, bind='127.0.0.1')"
PAGES = {
    "/": '<title>Shop</title><h1>Welcome</h1><form action="/found"><input name="q" aria-label="Search">'
    '<button>Go</button></form><a href="/about">About us</a><input type="password" value="hunter2">',
    "/about": "<title>About</title><p>We sell nothing.</p>",
    "/found": "<title>Found</title><p id=p></p><script>p.textContent = 'You looked for ' + location.search</script>",
    "/cookie": "<script>document.write('had: [' + document.cookie + ']'); document.cookie = 'who=me; max-age=9999'</script>",
    "/popup": "<p>before</p><script>alert('Pay now'); window.open('/about')</script><p>after</p>",
    "/leave": "<meta http-equiv=refresh content='0; url=file:///etc/passwd'><p>still here</p>",
    "/hidden": "<p>good\u202eevil</p>",
}
PROBE = """<p id=p>waiting</p><script>
const names = {names};
Promise.all(names.map((url) => fetch(url, {{ mode: "no-cors", cache: "no-store" }})
  .then(async (answer) => answer.type === "opaque" ? "reached" : "status " + answer.status, (error) => "refused")))
  .then((found) => {{ p.textContent = "result " + found.join(" ") + " end"; document.title = "done"; }});
</script>"""


@dataclass
class Owner:
    """Answers every permission request, and keeps what was asked."""

    answer: str = "once"
    asked: list[PermissionRequest] = field(default_factory=list)

    def caller(self, session: str) -> ToolCaller:
        async def ask(request: PermissionRequest) -> PermissionAnswer:
            self.asked.append(request)
            return PermissionAnswer(self.answer, None)  # type: ignore[arg-type]

        return ToolCaller(session, ask)


class TestHost:
    """Computers for browsers, with the real egress, without a keeper."""

    __test__ = False

    def __init__(self, proxy: RunningProxy, main: Computer, folder: Path, *, kept: bool = False) -> None:
        self.proxy = proxy
        self.main = main
        self.service_ports: set[int] = set()
        self.computers: dict[str, Computer] = {}
        self.folder = folder
        self._kept = kept

    @asynccontextmanager
    async def open_computer(self, session: str, name: str) -> AsyncIterator[Computer]:
        servers = OwnServers(session, lambda _: self.main, self.service_ports)

        async def handle(stream: Tunnel) -> None:
            await self.proxy.egress.handle(stream, session=session, local_servers=servers)

        home = self.folder / name
        home.mkdir(exist_ok=True)
        async with Computer.start(
            limits=Limits(memory=2 * 1024**3), hostname=name, home=home if self._kept else None
        ) as computer:
            await computer.listen(EGRESS_PORT, handle)
            self.computers[session] = computer
            try:
                yield computer
            finally:
                del self.computers[session]

    async def forget(self, name: str) -> None:
        pass


@dataclass
class Setting:
    """One egress, one site, one computer in which sessions work, and the browsers of all tests of this module."""

    proxy: RunningProxy
    site: FakeServer
    main: Computer
    host: TestHost
    browsers: Browsers
    pages: dict[str, str]

    @property
    def url(self) -> str:
        return f"http://shop.test:{self.site.port}"

    async def call(self, name: str, session: str = "s1", owner: Owner | None = None, **given: object) -> ToolAnswer:
        (tool,) = [one for one in make_browser_tools(self.browsers) if one.name == name]
        async with asyncio.timeout(DEADLINE):
            answer = await tool.call((owner or Owner()).caller(session), tool.check(given))
        return answer if isinstance(answer, ToolAnswer) else ToolAnswer(answer)

    async def probe(self, urls: list[str], session: str = "s1") -> list[str]:
        """What a page of the site finds out about these addresses."""
        self.pages["/probe"] = PROBE.format(names=json.dumps(urls))
        await self.call("browser_open", session, url=f"{self.url}/probe")
        found = ""

        async def is_done() -> bool:
            nonlocal found
            found = (await self.call("browser_read", session)).text
            return " end" in found

        await until(is_done)
        return found.partition("result ")[2].partition(" end")[0].split()

    async def serve(self, session: str, port: int) -> None:
        """A web server of a session in the computer."""
        command = ["/usr/bin/python3", "-c", SERVE.format(port=port)]
        await self.main.spawn(command, cwd="/tmp", apart=session)

        async def listens() -> bool:
            return any(one.port == port for one in await self.main.listening_sockets())

        await until(listens)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def setting(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Setting]:
    folder, pages = tmp_path_factory.mktemp("browser"), dict(PAGES)

    async def answer(seen: FakeServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.heads.append(head)
        path = head.split(b" ", 2)[1].decode().partition("?")[0]
        body = pages.get(path, "nothing").encode()
        kind = b"Content-Type: text/html; charset=utf-8\r\nConnection: close\r\n"
        writer.write(b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (kind, len(body), body))
        await writer.drain()

    async with run_server(answer) as site, run_proxy(folder, allow=[f"shop.test:{site.port}"]) as proxy:
        proxy.names.set("shop.test", ["127.0.0.1"])
        async with Computer.start() as main:
            host = TestHost(proxy, main, folder)
            browsers = Browsers(BrowserSection(enabled=True), host)
            try:
                yield Setting(proxy, site, main, host, browsers, pages)
            finally:
                await browsers.close_all()


async def test_a_page_is_opened_read_used_and_seen(setting: Setting) -> None:
    shown = await setting.call("browser_open", url=f"{setting.url}/")
    assert "Shop" in shown.text
    assert "Welcome" in shown.text
    assert shown.from_web
    assert "hunter2" not in shown.text
    rows = {line.split("] ", 1)[1]: int(line[1:].split("]")[0]) for line in shown.text.splitlines() if line[:1] == "["}
    typed = await setting.call("browser_type", element=rows["text Search"], text="a lamp & more")
    assert "= a lamp & more" in typed.text
    found = await setting.call("browser_click", element=rows["submit Go"] if "submit Go" in rows else rows["button Go"])
    assert "You looked for ?q=a+lamp+%26+more" in found.text
    with pytest.raises(FreeholdError, match="no element 99"):
        await setting.call("browser_click", element=99)
    seen = await setting.call("browser_screenshot")
    (picture,) = seen.pictures
    assert (picture.type, picture.content[:2]) == ("image/jpeg", b"\xff\xd8")
    assert f"{setting.url}/found" in seen.text
    await setting.call("browser_open", url=f"{setting.url}/")
    assert "We sell nothing" in (await setting.call("browser_click", element=rows["link About us"])).text
    assert set(KEYS) == set(PAGE_KEYS)
    assert "About" in (await setting.call("browser_press", key="PageDown")).text


async def test_the_owner_is_asked_for_a_site_and_a_no_opens_nothing(setting: Setting) -> None:
    owner = Owner("reject")
    before = len(setting.site.heads)
    with pytest.raises(FreeholdError, match="said no"):
        await setting.call("browser_open", "asked", owner, url=f"{setting.url}/about")
    assert len(setting.site.heads) == before
    assert not setting.browsers.has_open("asked")
    (asked,) = owner.asked
    assert asked.subjects == (f"browser:{setting.url}",)
    assert f"{setting.url}/about" in str(asked.parts)
    await setting.call("browser_open", url=f"{setting.url}/")
    with pytest.raises(FreeholdError, match="said no"):
        await setting.call("browser_type", "s1", owner, element=1, text="my words")
    assert "my words" in str(owner.asked[-1].parts)


async def test_a_site_to_which_a_page_leads_is_not_seen_without_the_owner(setting: Setting) -> None:
    """The attack: a server of the agent, for which nobody is asked, leads the browser to a site that the owner refuses."""
    await setting.serve("s1", 5304)
    lead = f"<title>Lead</title><script>setTimeout(() => location = '{setting.url}/about', 100)</script>"
    assert (await setting.main.run("cat > /tmp/lead.html", stdin=lead, apart="s1")).ok
    owner = Owner("reject")
    seen = ""

    async def is_refused() -> bool:
        nonlocal seen
        try:
            seen += (await setting.call("browser_read", owner=owner)).text
        except FreeholdError as error:
            return "said no" in error.message
        return False

    with suppress(FreeholdError):  # it may lead there at once
        seen += (await setting.call("browser_open", owner=owner, url="http://localhost:5304/lead.html")).text
    await until(is_refused)
    for act in ("browser_screenshot", "browser_read"):
        with pytest.raises(FreeholdError, match="said no"):
            await setting.call(act, owner=owner)
    assert "We sell nothing" not in seen
    assert {one.subjects for one in owner.asked} == {(f"browser:{setting.url}",)}
    owner = Owner()
    assert "We sell nothing" in (await setting.call("browser_read", owner=owner)).text
    await setting.call("browser_screenshot", owner=owner)
    assert len(owner.asked) == 1


async def test_nothing_is_done_on_a_site_to_which_a_page_leads_while_the_owner_is_asked(setting: Setting) -> None:
    await setting.serve("s1", 5305)
    await setting.call("browser_open", url=f"{setting.url}/")

    class LedAway(Owner):
        def caller(self, session: str) -> ToolCaller:
            async def ask(request: PermissionRequest) -> PermissionAnswer:
                async with setting.browsers.use(session) as chromium:
                    await chromium.page.open("http://localhost:5305/")
                    await chromium.page.read()
                return PermissionAnswer("once", None)

            return ToolCaller(session, ask)

    for name, given in (("press", {"key": "Enter"}), ("click", {"element": 1}), ("type", {"element": 1, "text": "x"})):
        await setting.call("browser_open", url=f"{setting.url}/")
        with pytest.raises(FreeholdError, match="led to another site"):
            await setting.call(f"browser_{name}", owner=LedAway(), **given)


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://a.example/x?y#z", "https://a.example"),
        ("https://A.example:443/", "https://a.example"),
        ("http://a.example:443/", "http://a.example:443"),
        ("https://a.example@b.example/", "https://b.example"),
        ("chrome-error://chromewebdata/", NO_SITE),
        ("http://a.example:x/", NO_SITE),
    ],
)
async def test_a_site_is_the_origin_of_its_address(url: str, site: str) -> None:
    assert find_site(url) == site


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "chrome://settings", "javascript:alert(1)", "data:text/html,x", "http://a@b.test", "x"],
)
async def test_only_web_addresses_are_opened(setting: Setting, url: str) -> None:
    with pytest.raises(FreeholdError, match="not a web address"):
        await setting.call("browser_open", url=url)


async def test_a_page_leads_to_no_file_and_its_hidden_characters_are_shown(setting: Setting) -> None:
    shown = await setting.call("browser_open", url=f"{setting.url}/leave")
    assert "root:" not in shown.text
    assert "root:" not in (await setting.call("browser_read")).text
    assert "good⟨U+202E⟩evil" in (await setting.call("browser_open", url=f"{setting.url}/hidden")).text


async def test_windows_and_dialogs_of_a_page_are_closed_and_told(setting: Setting) -> None:
    shown = (await setting.call("browser_open", url=f"{setting.url}/popup")).text
    assert "after" in shown
    assert "dialog, which was dismissed: Pay now" in shown


async def test_everything_goes_through_egress_as_the_session_and_nothing_else_is_asked_for(setting: Setting) -> None:
    before = len(setting.proxy.events("connection_refused"))
    (outcome,) = await setting.probe(["http://elsewhere.test/"])
    assert outcome == "reached"  # the answer of egress itself, which a page cannot read
    refused = setting.proxy.events("connection_refused")[before:]
    assert {(one["target"], one["who"]) for one in refused} == {("elsewhere.test:80", "session:s1")}
    with pytest.raises(FreeholdError, match="cannot be opened"):
        await setting.call("browser_open", url="https://elsewhere.test/")
    known = {"elsewhere.test:80", "elsewhere.test:443", f"shop.test:{setting.site.port}"}
    assert {one["target"] for one in setting.proxy.events("*")} <= known


async def test_a_page_reaches_servers_of_its_own_session_and_no_port_of_others(setting: Setting) -> None:
    """The attack: a page tries ports on loopback. Those of its own session are what an agent wants to look at."""
    await setting.serve("s1", 5301)
    await setting.serve("s2", 5302)
    mine = await setting.call("browser_open", owner=Owner("reject"), url="http://localhost:5301/")
    assert "Directory listing" in mine.text
    for url in ("http://localhost:5302/", "http://127.0.0.1:5302/", "http://[::1]:5302/"):
        assert "Directory listing" not in (await setting.call("browser_open", url=url)).text
    others = [5302, *RESERVED_PORTS, 22, 8001]
    before = setting.site.connected
    assert set(await setting.probe([f"http://127.0.0.1:{port}/" for port in others])) <= {"reached", "refused"}
    assert setting.site.connected > before
    # What the page "reached" is the refusal of egress: the server of the other session was asked nothing.
    told = await setting.main.run("cat /proc/net/tcp", apart="s2")
    assert told.exit_code == 0
    owner = await setting.call("browser_open", "s2", url="http://localhost:5302/")
    assert "Directory listing" in owner.text
    assert "Directory listing" not in (await setting.call("browser_open", "s2", url="http://localhost:5301/")).text


async def test_a_service_of_the_owner_is_reached_by_browsers(setting: Setting) -> None:
    await setting.serve("", 5303)
    assert "Directory listing" not in (await setting.call("browser_open", url="http://localhost:5303/")).text
    await setting.call("browser_close")
    setting.host.service_ports.add(5303)
    assert "Directory listing" in (await setting.call("browser_open", url="http://localhost:5303/")).text


async def test_no_session_sees_the_browser_or_the_profile_of_another(setting: Setting) -> None:
    await setting.call("browser_open", "s1", url=f"{setting.url}/cookie")
    assert "had: [who=me]" in (await setting.call("browser_open", "s1", url=f"{setting.url}/cookie")).text
    assert "had: []" in (await setting.call("browser_open", "s2", url=f"{setting.url}/cookie")).text
    # Agents work in another computer: they see neither the files nor the processes of any browser.
    running = await setting.main.run("ps ax -o comm", apart="s1")
    assert b"chrom" not in running.stdout
    found = await setting.main.run("find /home /workspace /tmp /run -iname '*cookies*' -o -iname profile", apart="s1")
    assert found.stdout == b""
    inside = setting.host.computers["s1"]
    seen = await inside.run("ls / /workspace /opt; id -u; cat /proc/self/status")
    assert b"Seccomp:\t2" in seen.stdout
    assert b"CapEff:\t0000000000000000" in seen.stdout
    assert b"agents" not in seen.stdout
    direct = await inside.run(f"exec 3<>/dev/tcp/127.0.0.1/{setting.site.port}")
    assert direct.exit_code != 0


async def test_a_browser_that_ends_is_started_anew_without_what_it_had(setting: Setting) -> None:
    await setting.call("browser_open", url=f"{setting.url}/cookie")
    assert "closed" in (await setting.call("browser_close")).text
    assert "s1" not in setting.host.computers
    with pytest.raises(FreeholdError, match="use browser_open first"):
        await setting.call("browser_read")
    assert "had: []" in (await setting.call("browser_open", url=f"{setting.url}/cookie")).text
    await setting.host.computers["s1"].run("pkill -9 -f remote-debugging-pipe")
    await until(lambda: not setting.browsers.has_open("s1"))
    assert "had: []" in (await setting.call("browser_open", url=f"{setting.url}/cookie")).text


async def test_a_kept_profile_is_there_again_for_the_same_session_only(setting: Setting, tmp_path: Path) -> None:
    host = TestHost(setting.proxy, setting.main, tmp_path, kept=True)
    browsers = Browsers(BrowserSection(enabled=True, profile="kept"), host)
    kept = Setting(setting.proxy, setting.site, setting.main, host, browsers, setting.pages)
    await kept.call("browser_open", url=f"{kept.url}/cookie")
    # Chromium writes cookies to its profile when it is closed.
    await kept.call("browser_close")
    assert "had: [who=me]" in (await kept.call("browser_open", url=f"{kept.url}/cookie")).text
    await kept.call("browser_close")
    assert name_computer("s1") != name_computer("s2")
    assert "had: []" in (await kept.call("browser_open", "s2", url=f"{kept.url}/cookie")).text
    await browsers.close_all()


async def test_only_so_many_browsers_are_open_and_an_unused_one_is_closed(setting: Setting) -> None:
    class NoHost(TestHost):
        @asynccontextmanager
        async def open_computer(self, session: str, name: str) -> AsyncIterator[Computer]:
            await asyncio.Event().wait()
            yield self.main

    browsers = Browsers(BrowserSection(enabled=True), NoHost(setting.proxy, setting.main, Path("/nonexistent")))
    waiting = [asyncio.ensure_future(browsers.use(f"s{number}").__aenter__()) for number in range(MAX_BROWSERS)]
    await until(lambda: all(browsers.has_open(f"s{number}") for number in range(MAX_BROWSERS)))
    with pytest.raises(FreeholdError, match="browsers of other conversations are open"):
        await browsers.use("one-more").__aenter__()
    await browsers.close_all()
    for one in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(one, FreeholdError)
    short = Browsers(BrowserSection(enabled=True, idle=1), setting.host)
    async with short.use("s9") as chromium:
        assert not chromium.has_ended
    await until(lambda: not short.has_open("s9"))
    await until(lambda: "s9" not in setting.host.computers)


async def test_a_program_that_is_no_browser_says_so(setting: Setting) -> None:
    browsers = Browsers(BrowserSection(enabled=True, program="/usr/bin/false"), setting.host)
    with pytest.raises(FreeholdError, match="/usr/bin/false has ended") as caught:
        await browsers.use("s8").__aenter__()
    assert caught.value.code == "browser.not-started"
    assert make_browser_tools(Browsers(BrowserSection(), setting.host)) == []
    assert set(get_args(BrowserSection.model_fields["profile"].annotation)) == {"session", "kept"}


async def test_a_profile_is_removed_only_after_its_browser_is_gone(setting: Setting) -> None:
    """Whoever closes it: the end of an agent and the removal of its session come at the same moment."""
    order: list[str] = []

    class SlowHost(TestHost):
        @asynccontextmanager
        async def open_computer(self, session: str, name: str) -> AsyncIterator[Computer]:
            async with super().open_computer(session, name) as computer:
                yield computer
            order.append("ended")

        async def forget(self, name: str) -> None:
            order.append(f"forgot {name}")

    browsers = Browsers(BrowserSection(enabled=True), SlowHost(setting.proxy, setting.main, setting.host.folder))
    async with browsers.use("s7"):
        pass
    browsers.close_soon("s7")
    await asyncio.sleep(0)  # the closing has begun
    browsers.forget("s7")
    await until(lambda: len(order) == 2)
    assert order == ["ended", f"forgot {name_computer('s7')}"]
