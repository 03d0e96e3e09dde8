"""The tour: a real agent changes a real file in the computer, with a script in the place of a model."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from freehold.agents.sessions.rows import SessionRow
from freehold.agents.sessions.service import SessionService
from freehold.egress.models import ModelGateway
from freehold.egress.models.provider import read_provider
from freehold.egress.models.provider_setup import TOUR_PROVIDER
from freehold.errors import FreeholdError
from freehold.manifest.sections.models import ModelSection

if TYPE_CHECKING:
    from freehold.testing import Conversation, Step

AGENT = "builtin"
TITLE = "Tour (no model is used)"
PROMPT = "This is the tour. Make a change that I can see and undo."
START_TIMEOUT = 10.0
STARTER_FILE = "src/theme.css"
"""The file of the first project that the tour changes. Without it the tour writes a file of its own."""
OWN_FILE = "tour.md"
LIGHT_THEME = """\
/* How it looks: light now. For a dark page, make the paper dark and the ink light. */
:root {
  color-scheme: light;
  --paper: #fbfaf7;
  --ink: #1d1c1a;
  --quiet: #6d6a63;
  --line: #e3e0d8;
  --accent: #2f6f4f;
  --on-accent: #ffffff;
}
"""
"""`STARTER_FILE` as the first project has it."""
DARK_THEME = """\
/* How it looks: dark now. For a light page, make the paper light and the ink dark. */
:root {
  color-scheme: dark;
  --paper: #16181b;
  --ink: #ebe8e1;
  --quiet: #a5a29a;
  --line: #34373b;
  --accent: #8fd3ae;
  --on-accent: #10281b;
}
"""
_TEXT = "# The tour was here\n\nIt was {now:%Y-%m-%d %H:%M:%S} UTC. Undo takes this away again.\n"
_WORDS = """\
**This was a tour.** No model was asked: a script chose the change and wrote these words. Everything else was real. \
The agent ran in the sealed computer, it asked you before it wrote `{path}`, and history recorded what changed.

Press **Undo** to take it back. Then connect a model, and describe a task of your own.
"""


_REJECTED = """\
**This was a tour**, and you rejected the change: `{path}` is as it was. An agent with a model would now ask you what to \
do instead. Connect a model, and describe a task of your own.
"""


@dataclass(frozen=True)
class TourSession:
    """An open session of the tour. The tour begins when `prompt` is sent to it."""

    row: SessionRow
    prompt: str


class Tour:
    """`run` must run as long as the tour is offered. The script is served when the first tour begins."""

    def __init__(self, models: ModelGateway, sessions: SessionService) -> None:
        self._models = models
        self._sessions = sessions
        self._wanted = asyncio.Event()
        self._served = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        await self._wanted.wait()
        from freehold.testing import ScriptedModel

        async with ScriptedModel(choose_step) as model:
            section = ModelSection(base_url=f"{model.url}/v1", model="script")
            self._models.serve_own(read_provider(TOUR_PROVIDER, section))
            self._served.set()
            await asyncio.Event().wait()

    async def open(self, *, who: str) -> TourSession:
        """Opens a session whose model is the script. Raises `agent.not-installed`."""
        self._wanted.set()
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await self._served.wait()
        except TimeoutError:
            raise FreeholdError("tour.not-running", "The tour did not start", hint="Try again in a moment") from None
        return TourSession(await self._sessions.open(AGENT, TITLE, TOUR_PROVIDER, who=who), PROMPT)


def choose_step(conversation: "Conversation") -> "Step":
    """Looks at the file, changes it, then says what happened. Any other prompt gets the words only: this is no model."""
    from freehold.testing import Call, Say

    prompts = [place for place, turn in enumerate(conversation.turns) if turn.role == "user"]
    last = prompts[-1] if prompts else 0
    results = [turn.text for turn in conversation.turns[last:] if turn.role == "tool"]
    looks = results or [turn.text for turn in conversation.turns if turn.role == "tool"]
    path, content = choose_change(looks[0] if looks else "")
    if conversation.tools and len(results) < 2 and prompts and PROMPT in conversation.turns[last].text:
        return Call("write", {"path": path, "content": content}) if results else Call("read", {"path": STARTER_FILE})
    words = _REJECTED if any("rejected" in text for text in results[1:]) else _WORDS
    return Say(words.format(path=path), pause=0.02)


def choose_change(shown: str) -> tuple[str, str]:
    """A file and its new text, after a look at `STARTER_FILE`. It is always a change, also when the tour is taken again.

    The first project becomes dark or light. A file that the owner has changed is not touched.
    """
    for now, then in ((LIGHT_THEME, DARK_THEME), (DARK_THEME, LIGHT_THEME)):
        if all(line in shown for line in now.splitlines()):
            return STARTER_FILE, then
    return OWN_FILE, _TEXT.format(now=datetime.now(UTC))
