"""The bodies of `/v1/code`."""

import base64
import binascii
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from freehold.computer import CodeContext, CodeLanguage, CodeResult, ContextInfo, Grants, IsolateLimits, ResultItem
from freehold.computer.isolates.execution import LimitName
from freehold.computer.isolates.language import LanguageName
from freehold.computer.isolates.records import ItemRole, ItemType
from freehold.errors import FreeholdError
from freehold.gateway.inputs import RequestBody
from freehold.gateway.moments import to_moment

MAX_CODE = 4 * 1024 * 1024
MAX_CONTENT = 64 * 1024 * 1024
"""Of a file or module in base64. The limit of the whole body is reached first where it is smaller."""
MAX_FILES = 100
MAX_ARGUMENTS = 1000
_TEXTS = ("json", "text", "table", "image/svg+xml")

Path = Annotated[str, Field(min_length=1, max_length=4095)]
FileName = Annotated[str, Field(min_length=1, max_length=255)]
Argument = Annotated[str, Field(max_length=100_000)]
Content = Annotated[str, Field(max_length=MAX_CONTENT)]


class CodeLimitsBody(RequestBody):
    """What the code may use. Bytes, seconds and counts."""

    memory: int = Field(default=IsolateLimits.memory, ge=1 << 20, le=1 << 36)
    processor: float = Field(default=IsolateLimits.processor, gt=0, le=86400)
    wall_time: float = Field(default=IsolateLimits.wall_time, gt=0, le=86400)
    output: int = Field(default=IsolateLimits.output, ge=0, le=1 << 26)
    results: int = Field(default=IsolateLimits.results, ge=0, le=1 << 26)
    file_size: int = Field(default=IsolateLimits.file_size, ge=0, le=1 << 40)
    open_files: int = Field(default=IsolateLimits.open_files, ge=8, le=1 << 16)


class CodeGrantsBody(RequestBody):
    """What the code may reach besides the system's programs and libraries: nothing by default."""

    files: dict[Path, Literal["r", "rw"]] = Field(default_factory=dict, max_length=MAX_FILES)
    network: bool = False
    packages: list[FileName] = Field(default_factory=list, max_length=MAX_FILES)


class RunCodeBody(RequestBody):
    """`inputs` are files for the code's folder, in base64. `outputs` are patterns of files there that come back.

    `file` is a file of the computer to run instead of the code; relative paths are below the workspace.
    The code of `wasm` is the text of a module, or a `module` in base64. `call` calls a function of it: `add(40, 2)`.
    `timeout` shortens `limits.wall_time` for this run. For more time, raise that limit.
    """

    code: str = Field(default="", max_length=MAX_CODE)
    file: Path | None = None
    module: Content | None = None
    call: str | None = Field(default=None, max_length=10_000)
    arguments: list[Argument] = Field(default_factory=list, max_length=MAX_ARGUMENTS)
    timeout: float | None = Field(default=None, gt=0, le=86400)
    inputs: dict[FileName, Content] = Field(default_factory=dict, max_length=MAX_FILES)
    outputs: list[Path] = Field(default_factory=list, max_length=MAX_FILES)

    def read_code(self) -> str | bytes:
        if self.module is None:
            return self.code
        if self.code:
            raise FreeholdError("request.bad-value", "Send the code or a module, not both")
        return _decode(self.module, "The module")

    async def read_source(self, runner: CodeLanguage | CodeContext) -> str | bytes:
        """The code, wherever it is."""
        if self.file is None:
            return self.read_code()
        if self.code or self.module is not None:
            raise FreeholdError("request.bad-value", "Send the code or the path of a file, not both")
        return await runner.read_file(self.file)

    def read_options(self) -> dict[str, Any]:
        """For `execute` of a language or a context."""
        return {
            "call": self.call,
            "arguments": tuple(self.arguments),
            "timeout": self.timeout,
            "inputs": {name: _decode(content, "An input file") for name, content in self.inputs.items()},
            "outputs": tuple(self.outputs),
            "name": self.file,
        }


class ExecuteCodeBody(RunCodeBody):
    """Code for a process of its own, what it may use and what it may reach."""

    language: LanguageName
    limits: CodeLimitsBody = CodeLimitsBody()
    grants: CodeGrantsBody = CodeGrantsBody()


class CreateCodeContextBody(RequestBody):
    language: LanguageName
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


class CodeEndBody(BaseModel):
    """`limit` names the limit that ended the code. `exit_code` is negative for a signal."""

    error: CodeErrorBody | None
    exit_code: int
    limit: LimitName | None
    duration: float
    processor: float


class CodeResultBody(CodeEndBody):
    """Everything that the code wrote, and how it ended."""

    stdout: str
    stderr: str
    items: list[CodeItemBody]


class CodeOutputBody(BaseModel):
    stream: Literal["stdout", "stderr"]
    text: str


class CodeStreamErrorBody(BaseModel):
    code: str
    message: str
    hint: str


class CodePartBody(BaseModel):
    """One line of a stream; exactly one field is there. The last line has `end`, or `failure` if the code could not run."""

    output: CodeOutputBody | None = None
    item: CodeItemBody | None = None
    end: CodeEndBody | None = None
    failure: CodeStreamErrorBody | None = None


class CodeContextBody(BaseModel):
    """`ended`: its variables are gone; reset it to go on."""

    id: str
    language: str
    label: str
    state: Literal["ready", "busy", "ended"]
    created: datetime
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


def describe_end(result: CodeResult) -> CodeEndBody:
    return CodeEndBody(
        error=None if result.error is None else CodeErrorBody(**vars(result.error)),
        exit_code=result.exit_code,
        limit=result.limit,
        duration=result.duration,
        processor=result.processor,
    )


def describe_code_result(result: CodeResult) -> CodeResultBody:
    return CodeResultBody(
        stdout=result.text,
        stderr=result.stderr.decode(errors="replace"),
        items=[describe_item(item) for item in result.items],
        **vars(describe_end(result)),
    )


def describe_context(info: ContextInfo) -> CodeContextBody:
    return CodeContextBody(
        id=info.id,
        language=info.language,
        label=info.label,
        state=info.state,
        created=to_moment(info.created),
        executions=info.executions,
    )


def read_limits(body: CodeLimitsBody) -> IsolateLimits:
    return IsolateLimits(**body.model_dump())


def read_grants(body: CodeGrantsBody) -> Grants:
    return Grants(dict(body.files), body.network, tuple(body.packages))


def _decode(content: str, what: str) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise FreeholdError("request.bad-value", f"{what} is not base64") from None
