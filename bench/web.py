"""What does the control center cost the one who looks at it: to arrive, to see a change, to see a word, to keep looking?

A real Chromium, a whole Freehold with 50,000 files. The peers are what a browser can do at all, in the same run: a bare
page of one script, and a bare socket whose every message is written into the page. A pixel is counted as drawn when the
second frame after the change begins.
"""

import contextlib
import http.server
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.e2e.hostile_texts import HOSTILE_TEXTS

from bench.boot import Home
from bench.harness import Figure, main
from freehold.identity.sign_ins import control_center_url

FILES = 50_000
MESSAGES = 5_000
SESSIONS = 1_000
SLOWER = 4
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 800}
# Here the pane beside a conversation is open by itself.
WIDE = {"width": 1920, "height": 1080}
PANE_SHOWN = ".workbench-pane [role=tabpanel] h1"
READY = "navigator.serviceWorker.ready.then(() => true)"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
AGENT = """
import json, sys, time
def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
def update(**what):
    send(method="session/update", params={"sessionId": "s", "update": what})
def say(text):
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})
for line in sys.stdin:
    message = json.loads(line)
    method, result = message.get("method"), {}
    if method == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {}}
    elif method == "session/new":
        result = {"sessionId": "s", "modes": {"currentModeId": "ask"}}
    elif method == "session/prompt":
        what, count, pause = json.loads(message["params"]["prompt"][0]["text"].rpartition("\\n")[2])
        for number in range(count):
            if what == "words":
                say("%d " % time.time_ns())
            elif what == "hostile":
                say(json.load(open("/workspace/hostile.json"))[count - 1])
                break
            else:
                say("Message **%d** of many, with `code` and a [link](https://example.com/%d).\\n\\n- one\\n- two" % (number, number))
                update(sessionUpdate="tool_call", toolCallId=str(number), title="Look at %d" % number, kind="read", status="completed")
            time.sleep(pause)
        result = {"stopReason": "end_turn"}
    if message.get("id") is not None:
        send(id=message["id"], result=result)
"""
MANIFEST = (
    '[ssh]\nenabled = false\n[agents]\ndefault = "clock"\n[agents.clock]\ncommand = "python3 /workspace/clock.py"\n'
)
BARE = b"""<!doctype html><link rel=icon href="data:,"><body><script src=/bare.js></script>"""
SCRIPT = b"document.body.append(Object.assign(document.createElement('main'), {innerHTML: '<h1>There</h1>'}))"

DRAWN = "const drawn = (then) => requestAnimationFrame(() => requestAnimationFrame(then));"
ARRIVED = """
window.arrived = new Promise((done) => {
  let busy = 0;
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) busy = Math.max(busy, task.startTime + task.duration);
  }).observe({type: 'longtask', buffered: true});
  %s
  const look = () => document.querySelector('%s') === null ? requestAnimationFrame(look)
    : drawn(() => setTimeout(() => done(Math.max(performance.now(), busy))));
  requestAnimationFrame(look);
});
"""
FIRST_ROW = """() => new Promise((done) => {
  %s
  const start = performance.now();
  const watch = new MutationObserver(() => {
    if (document.querySelector('[role=treeitem]') === null) return;
    watch.disconnect();
    drawn(() => done(performance.now() - start));
  });
  watch.observe(document.body, {childList: true, subtree: true});
  document.querySelector('nav a[href="/files"]').click();
})"""
ALL_ROWS = """() => new Promise((done) => {
  %s
  const look = () => performance.getEntriesByType('resource').some((one) => one.name.includes('/v1/files/tree'))
    ? drawn(() => done(performance.now())) : setTimeout(look, 5);
  look();
})"""
FLASHED = """(path) => {
  %s
  window.flashed = new Promise((done) => {
    const watch = new MutationObserver(() => {
      const row = document.querySelector(`[role=treeitem][title="${path}"]`);
      if (row === null || row.dataset.flash === undefined) return;
      watch.disconnect();
      drawn(() => done(Date.now()));
    });
    watch.observe(document.body, {childList: true, subtree: true, attributes: true});
  });
}"""
WORDS = """() => {
  %s
  window.ages = [];
  const seen = new Set();
  const log = document.querySelector('[role=log]');
  new MutationObserver(() => {
    const text = log.textContent;
    const fresh = (text.slice(-400).match(/\\d{19}/g) ?? []).filter((word) => !seen.has(word));
    for (const word of fresh) seen.add(word);
    if (fresh.length > 0) drawn(() => { for (const word of fresh) window.ages.push(Date.now() - Number(word) / 1e6) });
  }).observe(log, {childList: true, subtree: true, characterData: true});
}"""
AGES = """(count) => new Promise((done) => {
  const look = () => window.ages.length >= count ? done(window.ages) : requestAnimationFrame(look);
  look();
})"""
LONG_TASKS = """() => {
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
  }).observe({type: 'longtask'});
}"""
LONGEST = """() => new Promise((done) => {
  %s
  drawn(() => setTimeout(() => drawn(() => done(window.longest)), 100));
})"""
BARE_SOCKET = """(port) => new Promise((done) => {
  %s
  const ages = [];
  const place = document.body.appendChild(document.createElement('p'));
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
  socket.onmessage = ({data}) => {
    place.textContent = data;
    drawn(() => { ages.push(Date.now() - Number(data) / 1e6) });
  };
  socket.onclose = () => drawn(() => drawn(() => done(ages)));
})"""


SWITCHED = """([path, title]) => new Promise((done) => {
  %s
  const start = performance.now();
  const look = () => {
    const log = document.querySelector('[role=log]');
    const there = document.querySelector('.sessions-header h2')?.textContent === title
      && log?.getAttribute('aria-busy') === 'false' && log.textContent.includes(title);
    if (there) drawn(() => done(performance.now() - start)); else requestAnimationFrame(look);
  };
  history.pushState(null, '', path);
  window.dispatchEvent(new Event('freehold:route'));
  requestAnimationFrame(look);
})"""
TYPED = """(text) => new Promise((done) => {
  %s
  const field = document.querySelector('[role=combobox][aria-label=Command]');
  const start = performance.now();
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, text);
  field.dispatchEvent(new Event('input', {bubbles: true}));
  drawn(() => done(performance.now() - start));
})"""
MANY_SESSIONS = """async (count) => {
  const headers = {'content-type': 'application/json', authorization: `Sign-In ${localStorage.getItem('freehold.sign-in')}`};
  for (let at = 0; at < count; at += 10)
    await Promise.all(Array.from({length: 10}, (_, one) => fetch('/v1/sessions', {
      method: 'POST', headers, body: JSON.stringify({title: `Session number ${at + one}`})})));
}"""
# An empty frame and the two that every figure waits for.
NOTHING = """() => new Promise((done) => { %s const start = performance.now(); drawn(() => done(performance.now() - start)) })"""


# As DevTools and Lighthouse have them, in milliseconds and bytes a second.
SLOW_3G = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
SLOW_4G = {"offline": False, "latency": 150, "downloadThroughput": 204_800, "uploadThroughput": 93_750}
VITALS = """
window.vitals = {painted: 0, largest: 0, blocked: 0, moved: 0};
const see = (type, take) => new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({type, buffered: true});
see('paint', (one) => { if (one.name === 'first-contentful-paint') vitals.painted = one.startTime });
see('largest-contentful-paint', (one) => { vitals.largest = one.startTime });
see('longtask', (one) => { vitals.blocked += Math.max(0, one.duration - 50) });
see('layout-shift', (one) => { if (!one.hadRecentInput) vitals.moved += one.value });
"""
PAINTED = """() => new Promise((done) => {
  const look = () => window.vitals?.painted > 0 ? done(vitals.painted) : requestAnimationFrame(look);
  look();
})"""


class Looker:
    """One who is signed in, with a browser."""

    def __init__(self, home: Home, browser: Any) -> None:
        self.url = control_center_url(home.ports[0], None)
        self.context = browser.new_context(viewport=DESKTOP)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        words = [sys.executable, "-m", "freehold.cli.main", "open", "--print", "--home", str(home.home.root)]
        link = subprocess.run(words, env=home.environment, capture_output=True, text=True, check=True).stdout.strip()
        with self.page.expect_response("**/v1/sign-in/link"):
            self.page.goto(link)
        self.page.get_by_role("navigation", name="Pages").wait_for()

    def go(self, path: str) -> Any:
        self.page.goto(self.url + path)
        self.page.get_by_text("Live", exact=True).wait_for(state="attached")
        return self.page

    def post(self, path: str, **body: Any) -> Any:
        return self.page.evaluate(
            """([path, body]) => fetch(path, {method: 'POST', headers: {
            'content-type': 'application/json', authorization: `Sign-In ${localStorage.getItem('freehold.sign-in')}`},
            body: JSON.stringify(body)}).then((answer) => answer.json())""",
            [path, body],
        )

    def prompt(self, session: str, what: str, count: int, pause: float) -> None:
        self.post(f"/v1/sessions/{session}/prompt", text=json.dumps([what, count, pause]), key=uuid.uuid4().hex)


def p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def fill(workspace: Path) -> None:
    workspace.mkdir(parents=True, mode=0o700)
    for number in range(FILES):
        folder = workspace / f"folder{number // 500:03}" / f"inner{number // 50 % 10}"
        if number % 50 == 0:
            folder.mkdir(parents=True)
        (folder / f"file{number:05}.txt").write_bytes(b"%d\n" % number)
    (workspace / "clock.py").write_text(AGENT)
    (workspace / "a-live").mkdir()
    for number in range(20):
        (workspace / "a-live" / f"{number:02}.txt").write_text("0\n")


@contextlib.contextmanager
def bare_page() -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body, kind = (SCRIPT, "text/javascript") if self.path.endswith(".js") else (BARE, "text/html")
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: Any) -> None:
            """Nobody reads it."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def arrive(
    browser: Any, url: str, storage: Any, rounds: int, size: Any = DESKTOP, shown: str = "main h1, main h2, main button"
) -> tuple[float, float]:
    """Median milliseconds until the page can be used, on a slow processor, and the kilobytes that were sent."""
    times, sent = [], 0.0
    for _ in range(rounds):
        context = browser.new_context(viewport=size, storage_state=storage)
        page = context.new_page()
        wire = context.new_cdp_session(page)
        wire.send("Network.enable")
        wire.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        lengths: list[float] = []
        wire.on("Network.loadingFinished", lambda event, lengths=lengths: lengths.append(event["encodedDataLength"]))
        page.add_init_script(ARRIVED % (DRAWN, shown))
        page.goto(url, wait_until="commit")
        times.append(page.evaluate("window.arrived"))
        sent = sum(lengths) / 1000
        context.close()
    return statistics.median(times), sent


def see_vitals(browser: Any, url: str, storage: Any, rounds: int) -> dict[str, float]:
    """Medians of what Lighthouse weighs in its performance, on its slow network and processor, with an empty cache."""
    seen: list[dict[str, float]] = []
    for _ in range(rounds):
        context = browser.new_context(viewport=PHONE, storage_state=storage, service_workers="block")
        context.add_init_script(VITALS)
        page = context.new_page()
        wire = context.new_cdp_session(page)
        wire.send("Network.enable")
        wire.send("Network.emulateNetworkConditions", SLOW_4G)
        wire.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        page.goto(url)
        page.get_by_text("Live", exact=True).wait_for(state="attached")
        page.wait_for_load_state("networkidle")
        seen.append(page.evaluate("vitals"))
        context.close()
    return {name: statistics.median(one[name] for one in seen) for name in seen[0]}


def see_frame(browser: Any, url: str, storage: Any, rounds: int) -> float:
    """Median milliseconds to the first paint of a page that the browser has kept, on a network as slow as slow 3G."""
    context = browser.new_context(viewport=PHONE, storage_state=storage)
    context.add_init_script(VITALS)
    page = context.new_page()
    page.goto(url)
    page.evaluate(READY)
    page.reload()
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")
    wire.send("Network.emulateNetworkConditions", SLOW_3G)
    times: list[float] = []
    for _ in range(rounds):
        page.reload(wait_until="commit")
        times.append(page.evaluate(PAINTED))
    context.close()
    return statistics.median(times)


def see_tree(looker: Looker, rounds: int) -> tuple[float, float]:
    """Median milliseconds from the press to the first rows, and to all of them."""
    first, whole = [], []
    for _ in range(rounds):
        looker.go("/network").get_by_role("heading", name="Network").wait_for()
        start = looker.page.evaluate("performance.now()")
        first.append(looker.page.evaluate(FIRST_ROW % DRAWN))
        whole.append(looker.page.evaluate(ALL_ROWS % DRAWN) - start)
    return statistics.median(first), statistics.median(whole)


def see_changes(looker: Looker, workspace: Path, rounds: int) -> list[float]:
    page = looker.go("/files")
    page.get_by_role("treeitem", name="a-live").click()
    page.get_by_role("treeitem", name="19.txt").wait_for()
    times = []
    for number in range(rounds + 1):
        path = f"a-live/{number % 20:02}.txt"
        page.locator(f"[title='{path}']:not([data-flash])").wait_for()
        page.evaluate(FLASHED % DRAWN, path)
        start = time.time() * 1000
        (workspace / path).write_text(f"{number}\n")
        times.append(page.evaluate("window.flashed") - start)
        page.wait_for_timeout(100)
    return times[1:]


def see_words(looker: Looker, count: int) -> list[float]:
    session = looker.post("/v1/sessions")["id"]
    page = looker.go(f"/sessions?id={session}")
    looker.prompt(session, "words", 1, 0)
    page.get_by_role("log").get_by_text("17").first.wait_for()
    page.evaluate(WORDS % DRAWN)
    looker.prompt(session, "words", count, 0.03)
    found: list[float] = page.evaluate(AGES, count)
    return found


def bare_socket(looker: Looker, count: int) -> list[float]:
    """The same words over a bare socket to a bare page."""
    from websockets.sync.server import ServerConnection, serve

    def speak(socket: ServerConnection) -> None:
        for _ in range(count):
            socket.send(str(time.time_ns()))
            time.sleep(0.03)

    with bare_page() as url, serve(speak, "127.0.0.1", 0, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        page = looker.context.new_page()
        page.goto(url)
        ages: list[float] = page.evaluate(BARE_SOCKET % DRAWN, server.socket.getsockname()[1])
        page.close()
        server.shutdown()
        thread.join()
    return ages


def hostile_text(looker: Looker, workspace: Path) -> tuple[tuple[float, str], tuple[float, str]]:
    """The longest time for which the page does nothing else, while a text comes in and when its session is opened."""
    (workspace / "hostile.json").write_text(json.dumps(list(HOSTILE_TEXTS.values())))
    live, opened = [], []
    for number, name in enumerate(HOSTILE_TEXTS, 1):
        session = looker.post("/v1/sessions")["id"]
        page = looker.go(f"/sessions?id={session}")
        page.evaluate(LONG_TASKS)
        looker.prompt(session, "hostile", number, 0)
        page.get_by_role("log").get_by_text("tokens unknown").wait_for()
        live.append((page.evaluate(LONGEST % DRAWN), name))
        looker.go("/network").get_by_role("heading", name="Network").wait_for()
        page.evaluate(LONG_TASKS)
        page.evaluate(
            """(path) => { history.pushState(null, '', path); window.dispatchEvent(new Event('freehold:route')) }""",
            f"/sessions?id={session}",
        )
        page.get_by_role("log").get_by_text("tokens unknown").wait_for()
        opened.append((page.evaluate(LONGEST % DRAWN), name))
    return max(live), max(opened)


def talk(looker: Looker) -> dict[str, str]:
    """Two sessions with a conversation of some length: their addresses, by their titles.

    The last message is the title: of a conversation only what is in sight is drawn.
    """
    addresses = {}
    for title in ("The first of two", "The second of two"):
        session = looker.post("/v1/sessions", title=title)["id"]
        addresses[title] = f"/sessions?id={session}"
        page = looker.go(addresses[title])
        looker.prompt(session, "messages", 60, 0)
        page.get_by_role("log").get_by_text("tokens unknown").wait_for()
        text = f"{title}\n{json.dumps(['messages', 0, 0])}"
        looker.post(f"/v1/sessions/{session}/prompt", text=text, key=uuid.uuid4().hex)
        page.get_by_role("log").get_by_text(title).first.wait_for()
    return addresses


def switch_sessions(looker: Looker, addresses: dict[str, str], rounds: int) -> list[float]:
    """Milliseconds from one session to another that was open before."""
    for title, address in addresses.items():
        page = looker.go(address)
        page.get_by_role("log").get_by_text(title).first.wait_for(state="attached")
    turns = itertools.islice(itertools.cycle(addresses.items()), rounds)
    return [page.evaluate(SWITCHED % DRAWN, [address, title]) for title, address in turns]


def type_in_palette(looker: Looker, rounds: int) -> list[float]:
    """Milliseconds from a letter in the palette to what it finds."""
    page = looker.go("/network")
    page.get_by_role("heading", name="Network").wait_for()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Command").fill("file49999")
    page.get_by_role("listbox").get_by_role("option").first.wait_for()
    words = ("folder012 file", "session number 9", "settings", "inner3 f", "undo the last")
    typed = [word[: end + 1] for word in words for end in range(len(word))]
    return [page.evaluate(TYPED % DRAWN, typed[number % len(typed)]) for number in range(rounds)]


def memory(looker: Looker, messages: int) -> tuple[float, int]:
    """Megabytes of the page's own after so many messages have come in before its eyes, and how many elements it holds."""
    session = looker.post("/v1/sessions")["id"]
    page = looker.go(f"/sessions?id={session}")
    if messages:
        looker.prompt(session, "messages", messages, 0)
        page.get_by_role("log").get_by_text(f"Look at {messages - 1}").first.wait_for()
    wire = looker.context.new_cdp_session(page)
    wire.send("HeapProfiler.collectGarbage")
    used = wire.send("Runtime.getHeapUsage")["usedSize"] / 1e6
    elements: int = page.evaluate("document.querySelectorAll('*').length")
    wire.detach()
    return used, elements


def measure(quick: bool) -> Iterable[Figure]:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        home = Home(Path(folder))
        home.home.root.mkdir(mode=0o700)
        home.home.manifest.write_text(MANIFEST)
        fill(home.home.workspace)
        stack.enter_context(home.up())
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        stack.callback(browser.close)
        looker = Looker(home, browser)

        storage = looker.context.storage_state()
        rounds = 3 if quick else 9
        with bare_page() as url:
            bare, _ = arrive(browser, url, None, rounds)
        took, sent = arrive(browser, f"{looker.url}/sessions", storage, rounds)
        yield Figure("first load, sent", sent, "kB", aim="≤ 300 kB", met=sent <= 300)
        name = f"to interactive, processor slowed {SLOWER} times"
        yield Figure(name, took, "ms", "a bare page", bare)
        conversation = f"{looker.url}/sessions?id={looker.post('/v1/sessions', title='Beside its changes')['id']}"
        took, sent = arrive(browser, conversation, storage, rounds, WIDE, PANE_SHOWN)
        name = f"first load at {WIDE['width']:,} pixels with the pane open, sent"
        yield Figure(name, sent, "kB", aim="≤ 300 kB", met=sent <= 300)
        yield Figure(f"the same, to interactive, processor slowed {SLOWER} times", took, "ms", "a bare page", bare)
        frame = see_frame(browser, f"{looker.url}/sessions", storage, rounds)
        yield Figure("the frame from the cache, on slow 3G", frame, "ms", aim="≤ 1,000 ms", met=frame <= 1_000)
        vitals = see_vitals(browser, f"{looker.url}/sessions", storage, 1 if quick else rounds)
        largest, blocked, moved = vitals["largest"], vitals["blocked"], vitals["moved"]
        name = f"largest paint, first visit on slow 4G, processor slowed {SLOWER} times"
        yield Figure(name, largest, "ms", aim="≤ 2,500 ms", met=largest <= 2_500)
        yield Figure("the same, blocked by long tasks", blocked, "ms", aim="≤ 200 ms", met=blocked <= 200)
        yield Figure("the same, what moved (CLS)", moved, "", aim="≤ 0.1", met=moved <= 0.1)

        start = time.perf_counter()
        for _ in os.walk(home.home.workspace):
            pass
        walked = (time.perf_counter() - start) * 1000
        first, whole = see_tree(looker, 3 if quick else 9)
        name = f"a tree of {FILES:,} files to its first paint"
        yield Figure(name, first, "ms", "walking them", walked, "≤ 500 ms", first <= 500)
        yield Figure("the same, all of it", whole, "ms", "walking them", walked)

        words = bare_socket(looker, 45 if quick else 300)
        changes = see_changes(looker, home.home.workspace, 30 if quick else 200)
        name = f"a change on disk to the pixel, p95 of {len(changes)}"
        yield Figure(name, p95(changes), "ms", "a bare socket", p95(words), "≤ 150 ms", p95(changes) <= 150)
        yield Figure("the same, median", statistics.median(changes), "ms", "", statistics.median(words))
        seen = see_words(looker, 45 if quick else 300)
        yield Figure(f"a word to the pixel, p95 of {len(seen)}", p95(seen), "ms", "a bare socket", p95(words))
        yield Figure("the same, median", statistics.median(seen), "ms", "", statistics.median(words))

        frames = [looker.page.evaluate(NOTHING % DRAWN) for _ in range(30)]
        addresses = talk(looker)
        switched = switch_sessions(looker, addresses, 20 if quick else 100)
        name = f"from one session to another, p95 of {len(switched)}"
        yield Figure(name, p95(switched), "ms", "two frames", p95(frames), "≤ 100 ms", p95(switched) <= 100)
        looker.page.set_viewport_size(WIDE)
        switched = switch_sessions(looker, addresses, 20 if quick else 100)
        looker.page.locator(PANE_SHOWN).wait_for()
        name = f"the same at {WIDE['width']:,} pixels with the pane open, p95 of {len(switched)}"
        yield Figure(name, p95(switched), "ms", "two frames", p95(frames), "≤ 100 ms", p95(switched) <= 100)
        looker.page.set_viewport_size(DESKTOP)
        looker.page.evaluate(MANY_SESSIONS, SESSIONS)
        letters = type_in_palette(looker, 30 if quick else 150)
        name = f"a letter in the palette, {FILES:,} files and {SESSIONS:,} sessions, p95 of {len(letters)}"
        yield Figure(name, p95(letters), "ms", "two frames", p95(frames), "≤ 50 ms", p95(letters) <= 50)

        (live, live_name), (opened, opened_name) = hostile_text(looker, home.home.workspace)
        count = len(HOSTILE_TEXTS)
        name = f"hostile text as it comes, longest pause of {count} texts ({live_name})"
        yield Figure(name, live, "ms", aim="≤ 200 ms", met=live <= 200)
        name = f"hostile text when its session is opened ({opened_name})"
        yield Figure(name, opened, "ms", aim="≤ 200 ms", met=opened <= 200)

        count = 1_000 if quick else MESSAGES
        empty, _ = memory(looker, 0)
        used, elements = memory(looker, count)
        yield Figure(f"the page's memory after {count:,} messages", used, "MB", "before the first", empty)
        yield Figure("the elements it draws them with", elements, "", aim="< 5,000", met=elements < 5_000)


if __name__ == "__main__":
    main("What does the control center cost the one who looks at it?", measure)
