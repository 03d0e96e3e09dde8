"""Lets the model of a session write the title of the session, when that is cheap."""

import asyncio
import logging
from collections.abc import Callable

from freehold.agents.catalogue.registry import choose_provider, find_agent, split_choice
from freehold.agents.sessions.rows import SessionRow
from freehold.agents.sessions.session_title import ask_for_title, read_title
from freehold.egress.models import ModelGateway
from freehold.egress.models.short_text import is_cheap, write_short_text
from freehold.errors import FreeholdError
from freehold.manifest import Manifest

USAGE = "titles"
"""What usage and budgets show as the session."""
WRITE_TIMEOUT = 60.0
"""Seconds. A server on this machine may have to load the model first."""

log = logging.getLogger(__name__)


class TitleWriter:
    def __init__(self, models: ModelGateway, read_manifest: Callable[[], Manifest]) -> None:
        self._models = models
        self._read_manifest = read_manifest

    async def write(self, session: SessionRow, prompt: str) -> str | None:
        """None when no model may, can or does write one. Then the begin of the prompt stays the title."""
        try:
            async with asyncio.timeout(WRITE_TIMEOUT):
                return await self._write(session, prompt)
        except (FreeholdError, OSError, TimeoutError) as error:
            log.info("a title was not written: %s", error, extra={"session": session.id})
            return None

    async def _write(self, session: SessionRow, prompt: str) -> str | None:
        manifest = self._read_manifest()
        if manifest.agents.titles != "model":
            return None
        named, model = split_choice(session.model, manifest)
        name = named or choose_provider(find_agent(manifest, session.agent), manifest)
        if name is None or name not in manifest.models:
            return None  # an agent without a model, or the tour
        await self._models.wait_ready()
        provider = self._models.provider(name)
        wanted = model or provider.model
        if wanted is None or not await asyncio.to_thread(is_cheap, provider, wanted):
            return None
        answer = await write_short_text(self._models, provider, wanted, ask_for_title(prompt), session=USAGE)
        return read_title(answer)
