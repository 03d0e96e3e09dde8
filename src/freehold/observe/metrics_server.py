"""The metrics port: a minimal HTTP server, so that a process without a web server can serve metrics too."""

import asyncio
import errno
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from freehold.connection_slots import ConnectionSlots
from freehold.errors import FreeholdError
from freehold.observe.metrics import MetricsRegistry, registry

MAX_REQUEST_SIZE = 8 * 1024
REQUEST_TIMEOUT = 5.0
MAX_CONNECTIONS = 32

Refresh = Callable[[], Awaitable[None]]
"""Updates the metrics that are not counted as they happen. Awaited before each answer; never raises."""


@asynccontextmanager
async def serve_metrics(
    host: str = "127.0.0.1", port: int = 9091, metrics: MetricsRegistry = registry, refresh: Refresh | None = None
) -> AsyncIterator[int]:
    """Serve `GET /metrics` until the block ends. Yields the port (useful with port 0)."""
    running: set[asyncio.Task[None]] = set()
    slots = ConnectionSlots(MAX_CONNECTIONS, MAX_CONNECTIONS // 2)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        peer = writer.get_extra_info("peername")
        slot = slots.take(peer[0] if isinstance(peer, tuple) else "", writer.transport.abort)
        if task is None or slot is None:
            writer.close()
            return
        running.add(task)
        try:
            await _handle_request(reader, writer, host, metrics, refresh)
        finally:
            running.discard(task)
            slot.release()
            writer.close()

    try:
        server = await asyncio.start_server(handle, host, port, limit=MAX_REQUEST_SIZE)
    except OSError as error:
        raise _explain(error, host, port) from error
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await server.wait_closed()


async def _handle_request(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    host: str,
    metrics: MetricsRegistry,
    refresh: Refresh | None,
) -> None:
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT):
            head = await reader.readuntil(b"\r\n\r\n")
            refusal = _check_request(head.decode("latin-1"), host)
            if refusal is None and refresh is not None:
                await refresh()
            writer.write(refusal if refusal is not None else _metrics_page(metrics, head))
            await writer.drain()
    except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return  # the client disconnected, was too slow, or did not send HTTP


def _check_request(head: str, host: str) -> bytes | None:
    line, *rest = head.split("\r\n")
    method, _, target = line.partition(" ")
    names = [value.strip() for name, _, value in (row.partition(":") for row in rest) if name.lower() == "host"]
    if _is_loopback(host) and not all(_is_loopback(_host_of(name)) for name in names):
        # DNS rebinding: a web page could point its own host name at 127.0.0.1 and read the metrics.
        return _response("421 Misdirected Request", "this port serves its own address only\n")
    if method not in ("GET", "HEAD"):
        return _response("405 Method Not Allowed", "only GET\n", "Allow: GET, HEAD\r\n")
    if target.split(" ")[0].split("?")[0] != "/metrics":
        return _response("404 Not Found", "the metrics are at /metrics\n")
    return None


def _metrics_page(metrics: MetricsRegistry, head: bytes) -> bytes:
    answer = _response("200 OK", metrics.expose(), kind="text/plain; version=0.0.4; charset=utf-8")
    return answer[: answer.index(b"\r\n\r\n") + 4] if head.startswith(b"HEAD ") else answer


def _response(status: str, body: str, extra: str = "", kind: str = "text/plain; charset=utf-8") -> bytes:
    content = body.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{extra}Connection: close\r\n\r\n"
    return head.encode() + content


def _host_of(name: str) -> str:
    return name[1 : name.find("]")] if name.startswith("[") else name.rpartition(":")[0] or name


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _explain(error: OSError, host: str, port: int) -> FreeholdError:
    if error.errno == errno.EADDRINUSE:
        return FreeholdError(
            "observe.port-in-use",
            f"Metrics cannot be served: port {port} on {host} is in use",
            hint=f"Set observe.metrics_port in freehold.toml to another port, or find the program that uses it: ss -ltnp 'sport = {port}'",
        )
    return FreeholdError(
        "observe.cannot-listen",
        f"Metrics cannot be served at {host}:{port}: {error.strerror or error}",
        hint="Set observe.metrics_port in freehold.toml to a port from 1024 to 65535",
    )
