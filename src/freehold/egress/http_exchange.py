"""One request and its one response on a connection to a server, and whether that connection is clean afterwards."""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable

from freehold.egress import http1
from freehold.egress.http1 import BodyEncoder, Field, Framing, HttpResponse, RequestFraming
from freehold.egress.stream import ByteStream, PushbackReader
from freehold.errors import FreeholdError

MAX_INTERIM = 8
"""Limit of 1xx responses before the real one."""

OnInterim = Callable[[HttpResponse], Awaitable[None]]


class HttpExchange:
    """Sends one request and reads its response. The two may overlap: a server may respond before it has read everything.

    `is_clean` says whether the connection can carry another request.
    """

    def __init__(
        self,
        stream: ByteStream,
        reader: PushbackReader,
        method: str,
        target: str,
        fields: Iterable[Field],
        length: RequestFraming | None,
    ) -> None:
        """Raises `egress.malformed` for a request that a server could read in another way."""
        self.head = http1.encode_request(method, target, fields, length)
        self.reader = reader
        self.framing: Framing = 0
        """How the body of the response is framed. Known when its head was read."""
        self._method = method
        self._stream = stream
        self._body = BodyEncoder(0 if length is None else length)
        self._is_sent = False
        self._is_read = False
        self._is_spoiled = False

    @property
    def is_clean(self) -> bool:
        """Whether nothing of this exchange can be left on the connection.

        The request was sent whole before its response began, the response was read to an end that its head announced,
        the server keeps the connection open, and no byte follows. A response without a body to HEAD and with status
        204 or 304 does not count: a server that sends a body all the same would have it read as the next response.
        """
        return self._is_sent and self._is_read and not self._is_spoiled and not self.reader.has_buffered

    async def send_whole(self, body: bytes) -> None:
        """Sends head and body at once."""
        if await self._write(self.head + self._body.encode(body) + self._body.end()):
            self._is_sent = True

    async def send(self, pieces: AsyncIterable[bytes]) -> None:
        """Sends the head, then the body as its pieces come. Raises when they are not what the head announced."""
        if not await self._write(self.head):
            return
        async for piece in pieces:
            if not await self._write(self._body.encode(piece)):
                return
        if await self._write(self._body.end()):
            self._is_sent = True

    async def _write(self, data: bytes) -> bool:
        """False when the server has stopped reading. Its response may still be on the way."""
        try:
            if data:
                await self._stream.write(data)
        except (OSError, FreeholdError):
            self._is_spoiled = True
            return False
        return True

    async def read_head(self, on_interim: OnInterim | None = None, *, switches_to: str | None = None) -> HttpResponse:
        """The head of the response. Interim ones go to `on_interim`. 101 is returned only for the protocol `switches_to`.

        Raises `egress.bad-response`, `egress.too-long` or `egress.cut-short`.
        """
        for _ in range(MAX_INTERIM + 1):
            response = await http1.read_response(self.reader)
            self.framing = response.framing(self._method)
            if not self._is_sent or not response.keeps_open or not response.has_body(self._method):
                self._is_spoiled = True
            if response.status == 101:
                if switches_to is None or response.listed("upgrade") != {switches_to}:
                    raise http1.bad_response("it switches to a protocol that was not requested")
                return response
            if response.status >= 200:
                return response
            if on_interim is not None:
                await on_interim(response)
        raise http1.bad_response(f"it sends more than {MAX_INTERIM} interim responses")

    async def read_body(self) -> AsyncIterator[bytes]:
        """The body of the response, in pieces as they arrive. Raises `egress.bad-response` or `egress.cut-short`."""
        try:
            async for piece in http1.read_body(self.reader, self.framing):
                yield piece
        except FreeholdError as error:
            raise error if error.code == "egress.cut-short" else http1.bad_response("its chunks are invalid") from error
        self._is_read = self.framing != "until-end"
