"""The tour: a real agent changes a real file in the computer, with a script in the place of a model."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
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
"""The file of the starter project that the tour changes. Without it the tour writes a file of its own."""
OWN_FILE = "tour.md"
_THEME = ":root {\n  color-scheme: dark;\n  --paper: #101412;\n  --ink: #e8e6df;\n}\n"
_TEXT = "# The tour was here\n\nUndo takes this file away again.\n"
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

    def __init__(self, models: ModelGateway, sessions: SessionService, workspace: Path) -> None:
        self._models = models
        self._sessions = sessions
        self._workspace = workspace
        self._wanted = asyncio.Event()
        self._served = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        await self._wanted.wait()
        from freehold.testing import ScriptedModel

        async with ScriptedModel(self._choose_step) as model:
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

    def _choose_step(self, conversation: "Conversation") -> "Step":
        """The change first, then the words. Any other prompt gets the words only: this is no model."""
        from freehold.testing import Call, Say

        path, content = (STARTER_FILE, _THEME) if (self._workspace / STARTER_FILE).is_file() else (OWN_FILE, _TEXT)
        prompts = [place for place, turn in enumerate(conversation.turns) if turn.role == "user"]
        last = prompts[-1] if prompts else 0
        results = [turn.text for turn in conversation.turns[last:] if turn.role == "tool"]
        if conversation.tools and not results and prompts and PROMPT in conversation.turns[last].text:
            return Call("write", {"path": path, "content": content})
        words = _REJECTED if any("rejected" in text for text in results) else _WORDS
        return Say(words.format(path=path), pause=0.02)
