"""The methods that the keeper's socket answers. Each part of the keeper registers its own."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from freehold.errors import FreeholdError
from freehold.typed_call import AnyRequest, TypedCall, TypedStream, decode_request, encode_result

Call = TypeVar("Call", bound=TypedCall[Any])
Stream = TypeVar("Stream", bound=TypedStream[Any])
BAD_PARAMS = "keeper.bad-params"


@dataclass
class RpcMethods:
    """A call has one reply and is finished even if the caller disconnects. A stream ends when the caller disconnects.

    Both take plain JSON and give plain JSON. `keeper.bad-params` is raised before the work begins.
    """

    calls: dict[str, Callable[[object], Awaitable[Any]]] = field(default_factory=dict)
    streams: dict[str, Callable[[object], AsyncGenerator[Any, None]]] = field(default_factory=dict)

    def add_call(self, shape: type[Call], answer: Callable[[Call], Awaitable[object]]) -> None:
        """Answer the calls of this type. The result must have the type that the call declares."""

        def begin(params: object) -> Awaitable[Any]:
            return _finish(shape, answer(decode_request(shape, params, BAD_PARAMS)))

        self.calls[shape.method] = begin

    def add_stream(self, shape: type[Stream], answer: Callable[[Stream], AsyncGenerator[object, None]]) -> None:
        def begin(params: object) -> AsyncGenerator[Any, None]:
            return _encode_items(shape, answer(decode_request(shape, params, BAD_PARAMS)))

        self.streams[shape.method] = begin

    def unknown_method_error(self, name: str) -> FreeholdError:
        names = ", ".join(sorted([*self.calls, *self.streams]))
        return FreeholdError(
            "keeper.unknown-method", f"The keeper has no method {name[:100]!r}", hint=f"The methods are: {names}"
        )


async def _finish(shape: type[AnyRequest], work: Awaitable[object]) -> Any:
    return encode_result(shape, await work)


async def _encode_items(shape: type[AnyRequest], items: AsyncGenerator[object, None]) -> AsyncGenerator[Any, None]:
    try:
        async for item in items:
            yield encode_result(shape, item)
    finally:
        await items.aclose()
