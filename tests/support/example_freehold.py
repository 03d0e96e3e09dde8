"""A Freehold with contents: files, sessions, a permission request and a network request. For pictures and checks of pages."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

from freehold.identity.tokens import ApiTokens
from freehold.slots.contract import SLOT_NAMES
from freehold.testing import Call, Conversation, Say, Step, make_script

DARK = "Make the page dark."
BASKET = "Add a test for the price of a basket and run it."
RATES = "Fetch today's exchange rates."
LONG = "the quarterly figures of every branch office, as the accountant sent them on the last day before the holidays"

THEME = """:root {
  --paper: %s;
  --ink: %s;
}
"""
PAGE = """import "./theme.css";

export function App() {
  return <h1>Hello from the computer</h1>;
}
"""
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAF0lEQVR4nGOQj/EiCTGMahjVMKphqGoAAEFCSgFvN3OjAAAAAElFTkSuQmCC"
)
ASK = (
    "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT rates.example.com:443 HTTP/1.1\\r\\n"
    "Host: rates.example.com:443\\r\\n\\r\\n' >&3; head -n 1 <&3"
)
DONE = """The page is dark now. I changed two colours and left the layout as it was:

| name | before | now |
|---|---|---|
| `--paper` | white | `#14181a` |
| `--ink` | black | `#e8e6df` |

```css
:root {
  --paper: #14181a;
  --ink: #e8e6df;
}
```

- Both pass **AA** for contrast.
- To have it back, press *Undo this turn*.
"""


def _plan(*states: str) -> Call:
    steps = ("Find where the colours are", "Change them", "Look at the page again")
    return Call("plan", {"entries": [{"content": s, "status": state} for s, state in zip(steps, states, strict=True)]})


SCRIPTS = (
    make_script(
        [
            _plan("in_progress", "pending", "pending"),
            Call("read", {"path": "src/theme.css"}),
            Call("write", {"path": "src/theme.css", "content": THEME % ("#14181a", "#e8e6df")}),
            _plan("completed", "completed", "completed"),
            Say(DONE),
        ],
        when=DARK,
    ),
    make_script(
        [
            Call("write", {"path": "test/basket.test.ts", "content": 'test("a basket has a price", () => {});\n'}),
            Call("run", {"command": "npm test -- --run test/basket.test.ts && echo all green"}),
            Say("Done."),
        ],
        when=BASKET,
    ),
    make_script(
        [Call("run", {"command": ASK, "background": True}), Say("I asked; the answer is still out.")], when=RATES
    ),
)


def _choose_step(conversation: Conversation) -> Step | None:
    return next((step for script in SCRIPTS if (step := script(conversation)) is not None), None)


@asynccontextmanager
async def run_example_freehold(folder: Path) -> AsyncIterator[RunningFreehold]:
    """Until the block ends. One session has ended its turn, one waits for a permission, one for the network."""
    manifest = "[slots]\n" + "".join(f'{name} = "local"\n' for name in SLOT_NAMES)
    environment = {"FREEHOLD_SSH_ENABLED": "true"}
    options = FreeholdOptions(("builtin",), _choose_step, manifest, environment)
    async with run_freehold(folder, options) as freehold:
        await until(freehold.is_connected)
        await _add_content(freehold)
        await _fill_slots(freehold)
        yield freehold


async def _add_content(freehold: RunningFreehold) -> None:
    for path, text in {
        "README.md": "# Shop\n\nA small shop. `npm run dev` starts it.\n",
        "src/theme.css": THEME % ("white", "black"),
        "src/App.tsx": PAGE,
        "src/prices.ts": "export const price = (cents: number) => `${(cents / 100).toFixed(2)} €`;\n",
        f"notes/{LONG}.md": "Nothing was sold.\n",
        "data.json": '{"branches": 12}\n',
    }.items():
        await _write_file(freehold, path, text.encode())
    await _write_file(freehold, "images/leaf.png", DOT)
    dark = await freehold.open("builtin", title="A dark page")
    await _run_session(freehold, dark, DARK, ended=True)
    await _run_session(freehold, await freehold.open("builtin", title="What the euro costs"), RATES, ended=True)
    await freehold.open("builtin", title=f"Sum up {LONG}")
    await _run_session(freehold, await freehold.open("builtin", title="The price of a basket"), BASKET, ended=False)


async def _fill_slots(freehold: RunningFreehold) -> None:
    with ApiTokens(freehold.home.identity, owner=None) as tokens:
        secret = tokens.create("slots", ("beads", "pods", "memory", "admin"), None)[1]
    headers = {"authorization": f"Bearer {secret}"}

    async def send(method: str, path: str, body: object) -> Any:
        answer = await freehold.http.request(method, f"/v1/slots/{path}", json=body, headers=headers)
        assert answer.status_code in (200, 201), f"{path}: {answer.text}"
        return answer.json()

    epic = await send("POST", "beads/items", {"title": "Open the shop", "kind": "epic", "priority": 0})
    first = await send("POST", "beads/items", {"title": "Choose the colours", "parent": epic["id"], "labels": ["look"]})
    second = await send("POST", "beads/items", {"title": f"Sum up {LONG}", "parent": epic["id"], "priority": 1})
    third = await send("POST", "beads/items", {"title": "Fix the price of an empty basket", "kind": "bug"})
    await send("POST", f"beads/items/{second['id']}/needs", {"needs": first["id"]})
    await send("POST", f"beads/items/{first['id']}/claim", {})
    await send("POST", f"beads/items/{third['id']}/close", {"reason": "An empty basket costs nothing now"})
    for text in ("The shop opens at nine", f"The accountant calls it: {LONG}", "Prices are kept in cents"):
        await send("POST", "memory/entries", {"text": text})
    await send("PUT", "pods/data/contacts/ada.json", {"name": "Ada", "town": "London"})
    await send("PUT", f"pods/data/{LONG}.json", {})
    await send("POST", "pods/grants", {"agent": "builtin", "folder": "contacts/", "mode": "read"})


async def _write_file(freehold: RunningFreehold, path: str, data: bytes) -> None:
    answer = await freehold.http.put("/v1/files/content", params={"path": path}, content=data)
    assert answer.status_code == 200, answer.text


async def _run_session(freehold: RunningFreehold, session: str, text: str, *, ended: bool) -> None:
    """Allow the first permission request. Then wait for the end of the turn or for the next request."""
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, text)
        await watch.answer("once")
        await (watch.until("turn.ended") if ended else watch.until("approval", state="pending"))
