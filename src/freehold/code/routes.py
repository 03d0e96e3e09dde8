"""`/v1/code`: snippets that run in sealed processes of the computer, and contexts that keep their variables."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from fastapi import Request

from freehold.code.bodies import (
    CodeContextBody,
    CodeContextDeletedBody,
    CodePartBody,
    CodeResultBody,
    CreateCodeContextBody,
    ExecuteCodeBody,
    RunCodeBody,
    describe_code_result,
    describe_context,
    read_grants,
    read_limits,
)
from freehold.code.part_stream import JsonLines, answer_with_parts, wait_for_hang_up
from freehold.code.section import CodeSection
from freehold.computer import CodeContext, CodeLanguage, CodeResult
from freehold.computer.isolates.language import LANGUAGES, LanguageName
from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import UrlId
from freehold.gateway.routing import delete, get, post

MAX_BODY = 48 * 1024 * 1024


async def _execute(runner: CodeLanguage | CodeContext, body: RunCodeBody, **options: Any) -> CodeResult:
    return await runner.execute(await body.read_source(runner), **body.read_options(), **options)


async def _run_while_wanted(request: Request, execution: Coroutine[None, None, CodeResult]) -> CodeResult:
    """The result, unless the caller hangs up first: then the code is ended."""
    running, hung_up = asyncio.ensure_future(execution), asyncio.ensure_future(wait_for_hang_up(request))
    try:
        await asyncio.wait((running, hung_up), return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise FreeholdError("request.cancelled", "The caller has hung up, and the code was ended")
        return running.result()
    finally:
        for task in (running, hung_up):
            task.cancel()
        await asyncio.gather(running, hung_up, return_exceptions=True)


class CodeRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services

    def _language(self, name: LanguageName) -> CodeLanguage:
        language: CodeLanguage = getattr(self._services.computer, name)
        return language

    async def _context(self, identity: str) -> CodeContext:
        return await self._services.computer.python.contexts.get(identity)

    @post("/v1/code/execute", scope="terminal", max_body=MAX_BODY)
    async def execute_code(self, body: ExecuteCodeBody, request: Request) -> CodeResultBody:
        """Run code in a sealed process of its own, and wait for its end. A caller that hangs up ends it."""
        limits, grants = read_limits(body.limits), read_grants(body.grants)
        execution = _execute(self._language(body.language), body, limits=limits, grants=grants)
        return describe_code_result(await _run_while_wanted(request, execution))

    @post(
        "/v1/code/stream",
        scope="terminal",
        max_body=MAX_BODY,
        response_class=JsonLines,
        responses={200: {"model": CodePartBody, "description": "Lines of JSON, as they arrive."}},
    )
    async def stream_code(self, body: ExecuteCodeBody, request: Request) -> JsonLines:
        """Run code in a sealed process of its own, and send what it writes as it arrives. Hang up to end it.

        Each line is JSON; an empty line means that the code still runs.
        """
        limits, grants = read_limits(body.limits), read_grants(body.grants)
        language = self._language(body.language)
        parts = language.stream(await body.read_source(language), limits=limits, grants=grants, **body.read_options())
        return answer_with_parts(request, parts)

    @get("/v1/code/contexts", scope="terminal")
    async def list_code_contexts(self) -> list[CodeContextBody]:
        """Every context, the oldest first."""
        found = [info for name in LANGUAGES for info in await self._language(name).contexts.list()]
        return [describe_context(info) for info in sorted(found, key=lambda info: info.created)]

    @post("/v1/code/contexts", status_code=201, scope="terminal")
    async def create_code_context(self, body: CreateCodeContextBody) -> CodeContextBody:
        """A context keeps variables. It ends when it is deleted, or was not used for `code.keep_contexts`."""
        context = await self._language(body.language).contexts.create(
            limits=read_limits(body.limits),
            grants=read_grants(body.grants),
            label=body.label,
            keep=self._services.manifest.section(CodeSection).keep_contexts,
        )
        return describe_context(await context.info())

    @get("/v1/code/contexts/{context}", scope="terminal")
    async def read_code_context(self, context: UrlId) -> CodeContextBody:
        return describe_context(await (await self._context(context)).info())

    @post("/v1/code/contexts/{context}/execute", scope="terminal", max_body=MAX_BODY)
    async def execute_in_code_context(self, context: UrlId, body: RunCodeBody, request: Request) -> CodeResultBody:
        """Run code with the variables of the context, one piece at a time. A caller that hangs up interrupts it."""
        execution = _execute(await self._context(context), body)
        return describe_code_result(await _run_while_wanted(request, execution))

    @post(
        "/v1/code/contexts/{context}/stream",
        scope="terminal",
        max_body=MAX_BODY,
        response_class=JsonLines,
        responses={200: {"model": CodePartBody, "description": "Lines of JSON, as they arrive."}},
    )
    async def stream_in_code_context(self, context: UrlId, body: RunCodeBody, request: Request) -> JsonLines:
        """As `/v1/code/stream`, with the variables of the context. Hang up to interrupt it; the variables stay."""
        found = await self._context(context)
        return answer_with_parts(request, found.stream(await body.read_source(found), **body.read_options()))

    @post("/v1/code/contexts/{context}/interrupt", scope="terminal")
    async def interrupt_code_context(self, context: UrlId) -> CodeContextBody:
        """Interrupt what runs in the context, whoever started it. The variables stay."""
        found = await self._context(context)
        await found.interrupt()
        return describe_context(await found.info())

    @post("/v1/code/contexts/{context}/reset", scope="terminal")
    async def reset_code_context(self, context: UrlId) -> CodeContextBody:
        """Forget all variables and files of the context."""
        found = await self._context(context)
        await found.reset()
        return describe_context(await found.info())

    @delete("/v1/code/contexts/{context}", scope="terminal")
    async def delete_code_context(self, context: UrlId) -> CodeContextDeletedBody:
        """End the context and what runs in it."""
        await (await self._context(context)).delete()
        return CodeContextDeletedBody(id=context)
