"""Calls between processes with declared types: a request is a dataclass that names its method and its reply's type.

    @dataclass(frozen=True)
    class RestartProgram(TypedCall[ProgramStatus]):
        method: ClassVar[str] = "restart"
        program: str

Requests and replies are decoded strictly on both sides: see `freehold.strict_json`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, cast, get_args, get_origin

from freehold.errors import FreeholdError
from freehold.strict_json import WrongShape, decode, encode

Reply = TypeVar("Reply")
Reply_co = TypeVar("Reply_co", covariant=True)
Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)
Request = TypeVar("Request", bound="TypedCall[Any] | TypedStream[Any]")


class TypedCall(Generic[Reply_co]):
    """One request with one reply. Subclasses are frozen dataclasses."""

    method: ClassVar[str]


class TypedStream(Generic[Item_co]):
    """One request with any number of replies, each of the same type."""

    method: ClassVar[str]


@dataclass(frozen=True)
class NoResult:
    """The call succeeded and has nothing to report."""


AnyRequest = TypedCall[Any] | TypedStream[Any]


def result_type(request: type[AnyRequest]) -> type:
    """The type of the reply, or of each item of a stream, as the class declares it."""
    for parent in request.__mro__:
        for base in parent.__dict__.get("__orig_bases__", ()):
            origin = get_origin(base)
            if isinstance(origin, type) and issubclass(origin, TypedCall | TypedStream):
                return cast("type", get_args(base)[0])
    raise TypeError(f"{request.__name__} does not name its reply's type")


def encode_request(request: AnyRequest) -> dict[str, Any]:
    return cast("dict[str, Any]", encode(request))


def decode_request(shape: type[Request], params: object, code: str) -> Request:
    """The request that `params` describe; raises an error with this code when they do not fit."""
    try:
        return decode(shape, params)
    except WrongShape as error:
        raise FreeholdError(code, f"{shape.method}: {error}") from None


def encode_result(request: type[AnyRequest], result: object) -> Any:
    """The reply as JSON; refuses one of another type than the request declares."""
    wanted = result_type(request)
    if not isinstance(result, wanted):
        raise TypeError(f"{request.method} must answer {wanted.__name__}, not {type(result).__name__}")
    return encode(result)


def decode_reply(call: TypedCall[Reply], body: object, code: str) -> Reply:
    return cast("Reply", _decode_result(type(call), body, code))


def decode_item(stream: TypedStream[Item], body: object, code: str) -> Item:
    return cast("Item", _decode_result(type(stream), body, code))


def _decode_result(request: type[AnyRequest], body: object, code: str) -> object:
    try:
        return decode(result_type(request), body)
    except WrongShape as error:
        raise FreeholdError(
            code,
            f"The reply to {request.method} is not valid: {error}",
            hint="The two programs may be of different versions. Restart Freehold: freehold down, then freehold up",
        ) from None
