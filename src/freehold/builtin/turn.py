"""One turn: asks the model and runs its tools until it is done."""

import asyncio
import base64
import os
from collections.abc import Callable, Sequence

from freehold.builtin.blocks import PromptImage, PromptPart
from freehold.builtin.compaction import COMPACTION_THRESHOLD, compact, count_tokens
from freehold.builtin.context_windows import find_context_window
from freehold.builtin.conversation import (
    ModelMessage,
    TokenUsage,
    ToolRequest,
    ToolResult,
    UserImage,
    UserMessage,
    UserPart,
    UserText,
)
from freehold.builtin.instructions import build_instructions
from freehold.builtin.json_rpc import Json, RequestError
from freehold.builtin.mcp import connect_tools
from freehold.builtin.model_connection import ModelConnection, ModelSettings, connect_model
from freehold.builtin.providers.contract import ModelError, ModelRefusal, ProviderRequest, ReplyBuilder, SendPiece
from freehold.builtin.tool import BuiltinTool, check_arguments
from freehold.builtin.tool_call import ToolError
from freehold.builtin.tool_context import ToolContext
from freehold.builtin.tool_pictures import UNSEEN, count_pictures, drop_pictures, limit_pictures
from freehold.builtin.tools import all_tools

ToolOutcome = tuple[ToolResult, tuple[UserImage, ...]]

MAX_STEPS = 80
MAX_WAITS = 5
LEAST_WAIT = 0.25
"""Seconds. Also a provider that asks for no pause gets one, which doubles each time."""
LONGEST_WAIT = 120.0
"""Seconds. A provider that wants a longer pause is not waited for."""

SUMMARY = """\
Summarise this conversation between a user and a coding agent, so that the agent can continue with only the summary:
what the user wants, what was found (with names of files and commands), what was done, what is left. Write only the
summary."""


class TurnRunner:
    """Runs one prompt and reports to the client as it goes."""

    def __init__(self, context: ToolContext, settings: ModelSettings, model: ModelConnection) -> None:
        self._context = context
        self._session = context.session
        self._model = model
        self._window = settings.window or find_context_window(model.name)
        self._steps = int(os.environ.get("FREEHOLD_STEPS", MAX_STEPS))
        self._usage = TokenUsage()

    async def run(self, parts: Sequence[PromptPart]) -> Json:
        """The answer to session/prompt. The conversation is saved however the turn ends."""
        self._session.append(UserMessage(tuple(map(_content, parts))))
        try:
            async with connect_tools(self._context) as offered:
                reason = await self._drive({tool.name: tool for tool in [*all_tools(), *offered]})
        except ModelError as error:
            raise RequestError(str(error)) from error
        finally:
            self._answer_open_calls()
        await self._send_usage()
        used = self._usage
        return {
            "stopReason": reason,
            "usage": {
                "inputTokens": used.input,
                "outputTokens": used.output,
                "totalTokens": used.input + used.output,
                "cachedReadTokens": used.cached,
            },
        }

    async def compact_history(self) -> int:
        """Compacts the conversation. Returns about how many tokens it has then."""
        try:
            self._session.replace_messages(await compact(self._session.messages, 1, self._summarise))
        except ModelError as error:
            raise RequestError(str(error)) from error
        return count_tokens(self._session.messages)

    async def _drive(self, tools: dict[str, BuiltinTool]) -> str:
        """Asks until the model calls no more tools. Returns the reason of the end."""
        instructions = build_instructions(self._session)
        overflowed = False
        for _ in range(self._steps):
            await self._compact_if_full()
            try:
                message = await self._ask(instructions, tools)
            except ModelRefusal as refusal:
                messages = self._session.messages
                if refusal.refuses_pictures and any(map(count_pictures, messages)):
                    # The model cannot see: it continues with the text of the results.
                    self._session.replace_messages([drop_pictures(one, UNSEEN) for one in messages])
                elif refusal.is_overflow and not overflowed:
                    # The window of the model is smaller than expected: compact and continue from here.
                    overflowed = True
                    self._session.replace_messages(await compact(messages, self._window // 2, self._summarise))
                else:
                    raise
                message = await self._ask(instructions, tools)
            self._session.append(message)
            if not message.tool_requests:
                return "end_turn"
            self._session.append(UserMessage(tuple(await self._run_tools(message.tool_requests, tools))))
        await self._send_chunk(
            "agent_message_chunk",
            f"I stopped after {self._steps} steps without finishing. "
            "Write “continue” to go on, or tell me what to do differently.",
        )
        return "max_turn_requests"

    async def _ask(self, instructions: str, tools: dict[str, BuiltinTool]) -> ModelMessage:
        """One answer. While the provider is busy it is waited for, as long as it says, and the owner sees it."""
        described = [tool.description for tool in tools.values()]
        request = ProviderRequest(self._model.name, instructions, limit_pictures(self._session.messages), described)
        reply = self._reply()

        def open_reply() -> ReplyBuilder:
            nonlocal reply
            reply = self._reply()
            return reply

        try:
            return await self._ask_patiently(request, open_reply)
        except asyncio.CancelledError:
            partial = reply.finish()
            if partial.text:
                self._session.append(ModelMessage(partial.parts))
            raise

    async def _ask_patiently(self, request: ProviderRequest, open_reply: Callable[[], ReplyBuilder]) -> ModelMessage:
        """Waits while the provider is busy, as long as it asks, and tells the owner. Each attempt has its own reply."""
        for attempt in range(MAX_WAITS + 1):
            try:
                message = await self._model.ask(request, open_reply())
            except ModelRefusal as refusal:
                wait = (
                    2.0**attempt if refusal.retry_after is None else max(refusal.retry_after, LEAST_WAIT * 2**attempt)
                )
                if not refusal.is_busy or attempt == MAX_WAITS or wait > LONGEST_WAIT:
                    raise
                words = f"{refusal}. I try again in {wait:g} s.\n\n"
                await self._send_chunk("agent_thought_chunk", words)
                await asyncio.sleep(wait)
            else:
                self._usage += message.usage
                return message
        raise AssertionError("the last attempt raises or returns")

    async def _run_tools(self, requests: Sequence[ToolRequest], tools: dict[str, BuiltinTool]) -> list[UserPart]:
        """All results in the order of the calls, and then their pictures."""
        chosen = [tools.get(request.name) for request in requests]
        if any(tool is not None and tool.sequential for tool in chosen):
            outcomes = [await self._run_tool(request, tools) for request in requests]
        else:
            async with asyncio.TaskGroup() as group:
                running = [group.create_task(self._run_tool(request, tools)) for request in requests]
            outcomes = [task.result() for task in running]
        return [*(result for result, _ in outcomes), *(one for _, pictures in outcomes for one in pictures)]

    async def _run_tool(self, request: ToolRequest, tools: dict[str, BuiltinTool]) -> ToolOutcome:
        def failed(words: str) -> ToolOutcome:
            return ToolResult(request.call, request.name, words, failed=True), ()

        tool = tools.get(request.name)
        if tool is None:
            return failed(f"There is no tool {request.name!r}. The tools are: {', '.join(tools)}")
        try:
            given = check_arguments(request.parse(), tool.description.schema)
        except ValueError as error:
            return failed(f"The call is not valid: {error}. Call it again.")
        try:
            output = await tool.run(self._context.for_call(request.call), given)
        except ToolError as error:
            return failed(str(error))
        if isinstance(output, str):
            return ToolResult(request.call, request.name, output), ()
        return ToolResult(request.call, request.name, output.text), output.pictures

    async def _compact_if_full(self) -> None:
        await self._send_usage()
        if count_tokens(self._session.messages) >= self._window * COMPACTION_THRESHOLD:
            shorter = await compact(self._session.messages, self._window, self._summarise)
            if shorter != self._session.messages:
                self._session.replace_messages(shorter)

    async def _summarise(self, text: str) -> str:
        request = ProviderRequest(self._model.name, SUMMARY, [UserMessage((UserText(text),))])
        return (await self._ask_patiently(request, lambda: ReplyBuilder(_drop, _drop))).text

    def _answer_open_calls(self) -> None:
        """A turn that ended in the middle leaves calls without results, which no API accepts in the next request."""
        last = self._session.messages[-1]
        if isinstance(last, ModelMessage) and last.tool_requests:
            ended = [ToolResult(part.call, part.name, "Cancelled", failed=True) for part in last.tool_requests]
            self._session.append(UserMessage(tuple(ended)))

    def _reply(self) -> ReplyBuilder:
        return ReplyBuilder(self._sender("agent_message_chunk"), self._sender("agent_thought_chunk"))

    def _sender(self, kind: str) -> SendPiece:
        async def send(text: str) -> None:
            await self._send_chunk(kind, text)

        return send

    async def _send_chunk(self, kind: str, text: str) -> None:
        await self._context.send_update({"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    async def _send_usage(self) -> None:
        used = min(count_tokens(self._session.messages), self._window)
        await self._context.send_update({"sessionUpdate": "usage_update", "used": used, "size": self._window})


async def _drop(_text: str) -> None:
    """The words of a summary are for the model only."""


async def run_turn(context: ToolContext, settings: ModelSettings, parts: Sequence[PromptPart]) -> Json:
    model = await connect_model(settings)
    return await TurnRunner(context, settings, model).run(parts)


async def compact_now(context: ToolContext, settings: ModelSettings) -> int:
    return await TurnRunner(context, settings, await connect_model(settings)).compact_history()


def _content(part: PromptPart) -> UserPart:
    if isinstance(part, PromptImage):
        return UserImage(base64.b64encode(part.data).decode(), part.mime)
    return UserText(part)
