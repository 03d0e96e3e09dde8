"""One turn: asks the model and runs its tools until it is done. Imported late, because the model libraries load slowly."""

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

from freehold.builtin.blocks import PromptImage, PromptPart
from freehold.builtin.compaction import COMPACTION_THRESHOLD, compact, count_tokens
from freehold.builtin.instructions import build_instructions
from freehold.builtin.json_rpc import Json, RequestError
from freehold.builtin.mcp import connect_tools
from freehold.builtin.model_connection import ModelSettings, connect_model
from freehold.builtin.tool_context import ToolContext
from freehold.builtin.tools import all_tools

MAX_STEPS = 80
DEFAULT_WINDOW = 64_000
SUMMARY = """\
Summarise this conversation between a user and a coding agent, so that the agent can continue with only the summary:
what the user wants, what was found (with names of files and commands), what was done, what is left. Write only the
summary."""


class TurnRunner:
    """Runs one prompt and reports to the client as it goes."""

    def __init__(self, context: ToolContext, settings: ModelSettings, model: Model) -> None:
        self._context = context
        self._model = model
        self._window = settings.window or model.context_window or DEFAULT_WINDOW
        self._steps = int(os.environ.get("FREEHOLD_STEPS", MAX_STEPS))
        self._usage = RunUsage()
        self._forced = False

    async def run(self, parts: Sequence[PromptPart]) -> Json:
        """The answer to session/prompt. The conversation is saved however the turn ends."""
        session = self._context.session
        history = ModelMessagesTypeAdapter.validate_python(session.messages)
        reason = "end_turn"
        async with connect_tools(self._context) as offered:
            agent = Agent(
                self._model,
                deps_type=ToolContext,
                instructions=build_instructions(session),
                tools=[*all_tools(), *offered],
                retries=3,
                capabilities=[ProcessHistory(self._compact_if_full)],
            )
            try:
                await self._drive(agent, [_content(part) for part in parts], history)
            except UsageLimitExceeded:
                reason = "max_turn_requests"
                await self._send_message(
                    f"I stopped after {self._steps} steps without finishing. "
                    "Write “continue” to go on, or tell me what to do differently."
                )
            except ModelAPIError as error:
                raise RequestError(_explain(error)) from error
            except AgentRunError as error:
                raise RequestError(f"The answer of the model could not be used: {error}") from error
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

    async def compact_history(self) -> int:
        """Compacts the conversation. Returns about how many tokens it has then."""
        session = self._context.session
        history = ModelMessagesTypeAdapter.validate_python(session.messages)
        shorter = await compact(history, 1, self._summarise)
        self._save(shorter)
        return count_tokens(shorter)

    async def _drive(
        self, agent: Agent[ToolContext, str], content: list[UserContent], history: list[ModelMessage]
    ) -> None:
        limits = UsageLimits(request_limit=self._steps)
        prompt: list[UserContent] | None = content
        for attempt in (1, 2):
            with capture_run_messages() as messages:
                try:
                    async with agent.run_stream_events(
                        prompt, message_history=history, deps=self._context, usage_limits=limits, usage=self._usage
                    ) as events:
                        async for event in events:
                            await self._report(event)
                except ModelContextWindowExceededError:
                    if attempt == 2:
                        raise
                    # The window of the model is smaller than expected: compact and continue from here.
                    prompt, history, self._forced = None, list(messages), True
                    continue
                finally:
                    self._save(list(messages))
                await self._send_usage(messages)
            return

    async def _compact_if_full(self, _ctx: RunContext[ToolContext], messages: list[ModelMessage]) -> list[ModelMessage]:
        """Called before each request to the model. Saves the conversation first, in case the program ends during it."""
        self._save(messages)
        await self._send_usage(messages)
        if not self._forced and count_tokens(messages) < self._window * COMPACTION_THRESHOLD:
            return messages
        window = self._window // 2 if self._forced else self._window
        self._forced = False
        return await compact(messages, window, self._summarise)

    async def _summarise(self, text: str) -> str:
        helper = Agent(self._model, instructions=SUMMARY)
        async with helper.run_stream(text, usage=self._usage) as answer:
            return await answer.get_output()

    def _save(self, messages: list[ModelMessage]) -> None:
        if messages:
            self._context.session.messages = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
            self._context.session.save()

    async def _report(self, event: object) -> None:
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                await self._send_message(text)
            case (
                PartStartEvent(part=ThinkingPart(content=text))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text))
            ):
                await self._send_chunk("agent_thought_chunk", text or "")
            case _:
                pass

    async def _send_message(self, text: str) -> None:
        await self._send_chunk("agent_message_chunk", text)

    async def _send_chunk(self, kind: str, text: str) -> None:
        if text:
            await self._context.send_update({"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    async def _send_usage(self, messages: Sequence[ModelMessage]) -> None:
        used = min(count_tokens(messages), self._window)
        await self._context.send_update({"sessionUpdate": "usage_update", "used": used, "size": self._window})


async def run_turn(context: ToolContext, settings: ModelSettings, parts: Sequence[PromptPart]) -> Json:
    model = await connect_model(settings)
    return await TurnRunner(context, settings, model).run(parts)


async def compact_now(context: ToolContext, settings: ModelSettings) -> int:
    return await TurnRunner(context, settings, await connect_model(settings)).compact_history()


def _content(part: PromptPart) -> UserContent:
    return BinaryContent(data=part.data, media_type=part.mime) if isinstance(part, PromptImage) else part


def _explain(error: ModelAPIError) -> str:
    """The error message of the provider, or of the model gateway, such as a budget that is used up."""
    if isinstance(error, ModelHTTPError):
        return f"The model {error.model_name} answered {error.status_code}: {_error_text(error.body)}"
    cause = error.__cause__
    return f"The model cannot be reached: {error.message}" + (f" ({cause})" if cause else "")


def _error_text(body: Any) -> str:
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and inner.get("message"):
            return str(inner["message"])[:1000]
    return str(body)[:1000]
