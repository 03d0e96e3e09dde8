"""A Freehold in which somebody has lived for a while: files, talks, a question that waits. To be looked at, not tested."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.agents.whole import PATIENCE, Whole, prepare, running
from tests.keeper.running import free_ports

from freehold.testing import Call, Conversation, Say, ScriptedModel, Step, play

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
    play(
        [
            _plan("in_progress", "pending", "pending"),
            Call("read", {"path": "src/theme.css"}),
            Call("write", {"path": "src/theme.css", "content": THEME % ("#14181a", "#e8e6df")}),
            _plan("completed", "completed", "completed"),
            Say(DONE),
        ],
        when=DARK,
    ),
    play(
        [
            Call("write", {"path": "test/basket.test.ts", "content": 'test("a basket has a price", () => {});\n'}),
            Call("run", {"command": "npm test -- --run test/basket.test.ts && echo all green"}),
            Say("Done."),
        ],
        when=BASKET,
    ),
    play([Call("run", {"command": ASK, "background": True}), Say("I asked; the answer is still out.")], when=RATES),
)


def _script(conversation: Conversation) -> Step | None:
    return next((step for script in SCRIPTS if (step := script(conversation)) is not None), None)


@asynccontextmanager
async def lived_in(folder: Path) -> AsyncIterator[Whole]:
    """Until the block ends. One talk is done, one waits for an answer, one waits for the network's."""
    async with ScriptedModel(_script) as model:
        stead = prepare(folder, model.url, ("builtin",))
        stead.environment |= {"FREEHOLD_SSH_ENABLED": "true", "FREEHOLD_SSH_PORT": str(free_ports(1)[0])}
        whole = Whole(stead)
        async with whole.http:
            with running(whole):
                await _furnish(whole)
                yield whole


async def _connected(whole: Whole) -> None:
    """The gateway answers a moment before it has the computer."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if (await whole.http.get("/v1/files/list")).status_code == 200:
                return
            await asyncio.sleep(0.05)


async def _furnish(whole: Whole) -> None:
    await _connected(whole)
    for path, text in {
        "README.md": "# Shop\n\nA small shop. `npm run dev` starts it.\n",
        "src/theme.css": THEME % ("white", "black"),
        "src/App.tsx": PAGE,
        "src/prices.ts": "export const price = (cents: number) => `${(cents / 100).toFixed(2)} €`;\n",
        f"notes/{LONG}.md": "Nothing was sold.\n",
        "data.json": '{"branches": 12}\n',
    }.items():
        await _put(whole, path, text.encode())
    await _put(whole, "images/leaf.png", DOT)
    dark = await whole.open("builtin", title="A dark page")
    await _talk(whole, dark, DARK, ended=True)
    await _talk(whole, await whole.open("builtin", title="What the euro costs"), RATES, ended=True)
    await whole.open("builtin", title=f"Sum up {LONG}")
    await _talk(whole, await whole.open("builtin", title="The price of a basket"), BASKET, ended=False)


async def _put(whole: Whole, path: str, data: bytes) -> None:
    answer = await whole.http.put("/v1/files/content", params={"path": path}, content=data)
    assert answer.status_code == 200, answer.text


async def _talk(whole: Whole, session: str, words: str, *, ended: bool) -> None:
    """Says yes to the first question, and leaves the next one waiting where the turn is not to end."""
    async with whole.watching(session) as watch:
        await whole.prompt(session, words)
        await watch.answer("once")
        await (watch.until("turn.ended") if ended else watch.until("approval", state="pending"))


async def sign_in_link(whole: Whole) -> str:
    run = await asyncio.to_thread(whole.stead.run, "open", "--print", check=True)
    return run.stdout.strip()
