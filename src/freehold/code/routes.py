"""Code in isolates: snippets that run in sealed processes of the computer, and contexts that keep their variables."""

import asyncio
import base64
import binascii
from collections.abc import Coroutine
from typing import Annotated, Literal

from fastapi import Request
from pydantic import BaseModel, Field

from freehold.computer import CodeContext, CodeLanguage, CodeResult, ContextInfo, Grants, IsolateLimits, ResultItem
from freehold.computer.isolates.execution import LimitName
from freehold.computer.isolates.records import ItemRole, ItemType
from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import RequestBody, UrlId
from freehold.gateway.routing import delete, get, post

MAX_BODY = 48 * 1024 * 1024
MAX_CODE = 4 * 1024 * 1024
MAX_FILES = 100
_TEXTS = ("json", "text", "table", "image/svg+xml")

LanguageWord = Literal["python", "javascript", "typescript"]
Path = Annotated[str, Field(min_length=1, max_length=4095)]
FileName = Annotated[str, Field(min_length=1, max_length=255)]


class CodeLimitsBody(RequestBody):
    """What the code may use. Bytes and seconds."""

    memory: int = Field(default=IsolateLimits.memory, ge=1 << 20, le=1 << 36)
    processor: float = Field(default=IsolateLimits.processor, gt=0, le=86400)
    wall_time: float = Field(default=IsolateLimits.wall_time, gt=0, le=86400)
    output: int = Field(default=IsolateLimits.output, ge=0, le=1 << 26)
    results: int = Field(default=IsolateLimits.results, ge=0, le=1 << 26)


class CodeGrantsBody(RequestBody):
    """What the code may reach besides the system's programs and libraries: nothing by default."""

    files: dict[Path, Literal["r", "rw"]] = Field(default_factory=dict, max_length=MAX_FILES)
    network: bool = False
    packages: list[FileName] = Field(default_factory=list, max_length=MAX_FILES)


class RunCodeBody(RequestBody):
    """`inputs` are files for the code's folder, in base64. `outputs` are patterns of files there that come back."""

    code: str = Field(max_length=MAX_CODE)
    timeout: float | None = Field(default=None, gt=0, le=86400)
    inputs: dict[FileName, str] = Field(default_factory=dict, max_length=MAX_FILES)
    outputs: list[Path] = Field(default_factory=list, max_length=MAX_FILES)


class ExecuteCodeBody(RunCodeBody):
    language: LanguageWord
    limits: CodeLimitsBody = CodeLimitsBody()
    grants: CodeGrantsBody = CodeGrantsBody()


class CreateCodeContextBody(RequestBody):
    language: LanguageWord
    label: str = Field(default="", max_length=200)
    limits: CodeLimitsBody = CodeLimitsBody()
    grants: CodeGrantsBody = CodeGrantsBody()


class CodeItemBody(BaseModel):
    """The value of the last expression, something displayed, or a file. `data` is base64; one of the two is null."""

    role: ItemRole
    type: ItemType
    name: str
    text: str | None
    data: str | None


class CodeErrorBody(BaseModel):
    name: str
    message: str
    traceback: str


class CodeResultBody(BaseModel):
    """`limit` names the limit that ended the code. `exit_code` is negative for a signal."""

    stdout: str
    stderr: str
    items: list[CodeItemBody]
    error: CodeErrorBody | None
    exit_code: int
    limit: LimitName | None
    duration: float
    processor: float


class CodeContextBody(BaseModel):
    """`ended`: its variables are gone; reset it to go on."""

    id: str
    language: str
    label: str
    state: Literal["ready", "busy", "ended"]
    created: float
    executions: int


class CodeContextDeletedBody(BaseModel):
    id: str


def describe_item(item: ResultItem) -> CodeItemBody:
    is_text = item.type in _TEXTS
    return CodeItemBody(
        role=item.role,
        type=item.type,
        name=item.name,
        text=item.content.decode(errors="replace") if is_text else None,
        data=None if is_text else base64.b64encode(item.content).decode(),
    )


def describe_code_result(result: CodeResult) -> CodeResultBody:
    error = result.error
    return CodeResultBody(
        stdout=result.text,
        stderr=result.stderr.decode(errors="replace"),
        items=[describe_item(item) for item in result.items],
        error=None
        if error is None
        else CodeErrorBody(name=error.name, message=error.message, traceback=error.traceback),
        exit_code=result.exit_code,
        limit=result.limit,
        duration=result.duration,
        processor=result.processor,
    )


def _describe_context(info: ContextInfo) -> CodeContextBody:
    return CodeContextBody(
        id=info.id,
        language=info.language,
        label=info.label,
        state=info.state,
        created=info.created,
        executions=info.executions,
    )


def _read_inputs(inputs: dict[str, str]) -> dict[str, bytes]:
    try:
        return {name: base64.b64decode(content, validate=True) for name, content in inputs.items()}
    except (binascii.Error, ValueError):
        raise FreeholdError("request.bad-value", "An input file is not base64") from None


def _read_limits(body: CodeLimitsBody) -> IsolateLimits:
    return IsolateLimits(**body.model_dump())


def _read_grants(body: CodeGrantsBody) -> Grants:
    return Grants(dict(body.files), body.network, tuple(body.packages))


async def _run_while_wanted(request: Request, execution: Coroutine[None, None, CodeResult]) -> CodeResult:
    """The result, unless the caller hangs up first: then the code is ended."""
    running, hung_up = asyncio.ensure_future(execution), asyncio.ensure_future(_wait_for_hang_up(request))
    try:
        await asyncio.wait((running, hung_up), return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise FreeholdError("request.cancelled", "The caller has hung up, and the code was ended")
        return running.result()
    finally:
        for task in (running, hung_up):
            task.cancel()
        await asyncio.gather(running, hung_up, return_exceptions=True)


async def _wait_for_hang_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        continue


class CodeRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services

    def _language(self, name: LanguageWord) -> CodeLanguage:
        computer = self._services.computer
        return {"python": computer.python, "javascript": computer.javascript, "typescript": computer.typescript}[name]

    async def _context(self, identity: str) -> CodeContext:
        return await self._services.computer.python.contexts.get(identity)

    @post("/v1/code/execute", scope="terminal", max_body=MAX_BODY)
    async def execute_code(self, body: ExecuteCodeBody, request: Request) -> CodeResultBody:
        """Run code in a sealed process of its own, and wait for its end. A caller that hangs up ends it."""
        execution = self._language(body.language).execute(
            body.code,
            timeout=body.timeout,
            limits=_read_limits(body.limits),
            grants=_read_grants(body.grants),
            inputs=_read_inputs(body.inputs),
            outputs=tuple(body.outputs),
        )
        return describe_code_result(await _run_while_wanted(request, execution))

    @get("/v1/code/contexts", scope="terminal")
    async def list_code_contexts(self) -> list[CodeContextBody]:
        """Every context, the oldest first."""
        computer = self._services.computer
        found = [
            info
            for language in (computer.python, computer.javascript, computer.typescript)
            for info in await language.contexts.list()
        ]
        return [_describe_context(info) for info in sorted(found, key=lambda info: info.created)]

    @post("/v1/code/contexts", status_code=201, scope="terminal")
    async def create_code_context(self, body: CreateCodeContextBody) -> CodeContextBody:
        """A context keeps variables. It ends when it is deleted, or was not used for an hour."""
        context = await self._language(body.language).contexts.create(
            limits=_read_limits(body.limits), grants=_read_grants(body.grants), label=body.label
        )
        return _describe_context(await context.info())

    @get("/v1/code/contexts/{context}", scope="terminal")
    async def read_code_context(self, context: UrlId) -> CodeContextBody:
        return _describe_context(await (await self._context(context)).info())

    @post("/v1/code/contexts/{context}/execute", scope="terminal", max_body=MAX_BODY)
    async def execute_in_code_context(self, context: UrlId, body: RunCodeBody, request: Request) -> CodeResultBody:
        """Run code with the variables of the context, one piece at a time. A caller that hangs up interrupts it."""
        found = await self._context(context)
        execution = found.execute(
            body.code, timeout=body.timeout, inputs=_read_inputs(body.inputs), outputs=tuple(body.outputs)
        )
        return describe_code_result(await _run_while_wanted(request, execution))

    @post("/v1/code/contexts/{context}/reset", scope="terminal")
    async def reset_code_context(self, context: UrlId) -> CodeContextBody:
        """Forget all variables and files of the context."""
        found = await self._context(context)
        await found.reset()
        return _describe_context(await found.info())

    @delete("/v1/code/contexts/{context}", scope="terminal")
    async def delete_code_context(self, context: UrlId) -> CodeContextDeletedBody:
        """End the context and what runs in it."""
        await (await self._context(context)).delete()
        return CodeContextDeletedBody(id=context)
