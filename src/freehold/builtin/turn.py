"""One turn: the model is asked, its tools are run, until it has nothing more to do. Imported late, for it is heavy."""

import os
from collections.abc import Sequence
from typing import Any

from pydantic_ai import Agent, RunContext, capture_run_messages
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    UsageLimitExceeded,
)
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    UserContent,
)
from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage, UsageLimits

from freehold.builtin.blocks import Image, Word
from freehold.builtin.compaction import FULL, compact, size_of
from freehold.builtin.connecting import Pointed, connect_model
from freehold.builtin.instructions import instructions
from freehold.builtin.mcp import offered_tools
from freehold.builtin.tools import all_tools
from freehold.builtin.wire import Json, Refusal
from freehold.builtin.work import Work

STEPS = 80
WINDOW = 64_000
SUMMARY = """\
Sum up this conversation between a user and a coding agent, so that the agent can go on with nothing else: what the user
wants, what was found out (with names of files and commands), what was done, what is left. Only the summary."""


class Turn:
    """Runs one prompt and tells the client about it as it goes."""

    def __init__(self, work: Work, pointed: Pointed, model: Model) -> None:
        self._work = work
        self._model = model
        self._window = pointed.window or model.context_window or WINDOW
        self._steps = int(os.environ.get("FREEHOLD_STEPS", STEPS))
        self._usage = RunUsage()
        self._forced = False

    async def run(self, words: Sequence[Word]) -> Json:
        """ACP's answer to the prompt. What was said is saved however the turn ends."""
        session = self._work.session
        history = ModelMessagesTypeAdapter.validate_python(session.messages)
        reason = "end_turn"
        async with offered_tools(self._work) as offered:
            agent = Agent(
                self._model,
                deps_type=Work,
                instructions=instructions(session),
                tools=[*all_tools(), *offered],
                retries=3,
                capabilities=[ProcessHistory(self._make_room)],
            )
            try:
                await self._drive(agent, [_content(word) for word in words], history)
            except UsageLimitExceeded:
                reason = "max_turn_requests"
                await self._say(
                    f"I have taken {self._steps} steps without coming to an end, so I stop here. "
                    "Say “go on” if I am on the right way, or tell me what to do differently."
                )
            except ModelAPIError as error:
                raise Refusal(_explained(error)) from error
            except AgentRunError as error:
                raise Refusal(f"The model and I do not understand each other: {error}") from error
        used = self._usage
        return {
            "stopReason": reason,
            "usage": {
                "inputTokens": used.input_tokens,
                "outputTokens": used.output_tokens,
                "totalTokens": used.input_tokens + used.output_tokens,
                "cachedReadTokens": used.cache_read_tokens,
            },
        }

    async def make_room_now(self) -> int:
        """Compact whatever there is; how many tokens are left, roughly."""
        session = self._work.session
        history = ModelMessagesTypeAdapter.validate_python(session.messages)
        shorter = await compact(history, 1, self._summarise)
        self._keep(shorter)
        return size_of(shorter)

    async def _drive(self, agent: Agent[Work, str], words: list[UserContent], history: list[ModelMessage]) -> None:
        limits = UsageLimits(request_limit=self._steps)
        prompt: list[UserContent] | None = words
        for attempt in (1, 2):
            with capture_run_messages() as messages:
                try:
                    async with agent.run_stream_events(
                        prompt, message_history=history, deps=self._work, usage_limits=limits, usage=self._usage
                    ) as events:
                        async for event in events:
                            await self._pass_on(event)
                except ModelContextWindowExceededError:
                    if attempt == 2:
                        raise
                    # The model knows its window better than we do: make room and go on from where it was.
                    prompt, history, self._forced = None, list(messages), True
                    continue
                finally:
                    self._keep(list(messages))
                await self._tell_usage(messages)
            return

    async def _make_room(self, _ctx: RunContext[Work], messages: list[ModelMessage]) -> list[ModelMessage]:
        """Before each request to the model. What there is by then is saved, should we be ended in the middle."""
        self._keep(messages)
        await self._tell_usage(messages)
        if not self._forced and size_of(messages) < self._window * FULL:
            return messages
        window = self._window // 2 if self._forced else self._window
        self._forced = False
        return await compact(messages, window, self._summarise)

    async def _summarise(self, told: str) -> str:
        helper = Agent(self._model, instructions=SUMMARY)
        async with helper.run_stream(told, usage=self._usage) as answer:
            return await answer.get_output()

    def _keep(self, messages: list[ModelMessage]) -> None:
        if messages:
            self._work.session.messages = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
            self._work.session.save()

    async def _pass_on(self, event: object) -> None:
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                await self._say(text)
            case (
                PartStartEvent(part=ThinkingPart(content=text))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text))
            ):
                await self._chunk("agent_thought_chunk", text or "")
            case _:
                pass

    async def _say(self, text: str) -> None:
        await self._chunk("agent_message_chunk", text)

    async def _chunk(self, kind: str, text: str) -> None:
        if text:
            await self._work.tell({"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    async def _tell_usage(self, messages: Sequence[ModelMessage]) -> None:
        used = min(size_of(messages), self._window)
        await self._work.tell({"sessionUpdate": "usage_update", "used": used, "size": self._window})


async def run_turn(work: Work, pointed: Pointed, words: Sequence[Word]) -> Json:
    model = await connect_model(pointed)
    return await Turn(work, pointed, model).run(words)


async def compact_now(work: Work, pointed: Pointed) -> int:
    return await Turn(work, pointed, await connect_model(pointed)).make_room_now()


def _content(word: Word) -> UserContent:
    return BinaryContent(data=word.data, media_type=word.mime) if isinstance(word, Image) else word


def _explained(error: ModelAPIError) -> str:
    """The provider's own words, where it has some: a budget that is used up is told like this, too."""
    if isinstance(error, ModelHTTPError):
        return f"The model {error.model_name} answered {error.status_code}: {_words(error.body)}"
    cause = error.__cause__
    return f"The model cannot be reached: {error.message}" + (f" ({cause})" if cause else "")


def _words(body: Any) -> str:
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and inner.get("message"):
            return str(inner["message"])[:1000]
    return str(body)[:1000]
