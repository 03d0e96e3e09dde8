"""Optional traces. Without an endpoint, OpenTelemetry is not imported and a span costs one call.

A span in another process, or of work that another request began, gets its parent as text: see `trace_parent`.
"""

import re
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit

from freehold import __version__
from freehold.errors import FreeholdError
from freehold.observe.secrets import MASK, Secret, mask_secrets

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import Tracer

Attribute = str | bool | int | float | Secret
SpanSide = Literal["internal", "client", "server"]
"""`client`: the span waits for another program. `server`: it does what another program asked for."""

MAX_KEPT_PARENTS = 10_000
_TRACE_PARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class TraceSpan(Protocol):
    def set(self, name: str, value: Attribute) -> None:
        """Add an attribute. Secrets are masked."""


class OpenSpan(TraceSpan, Protocol):
    """A span that is ended by a call, for work that begins and ends in different functions."""

    def end(self, error: str | None = None) -> None:
        """Call it once. `error` is a short word for why it failed."""


class _NoSpan:
    """The span without tracing. One instance serves all."""

    def set(self, name: str, value: Attribute) -> None:
        return None

    def end(self, error: str | None = None) -> None:
        return None

    def __enter__(self) -> "TraceSpan":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


_NO_SPAN = _NoSpan()
_provider: "TracerProvider | None" = None
_tracer: "Tracer | None" = None
_kept_parents: OrderedDict[str, str] = OrderedDict()


def configure_tracing(endpoint: str | None, *, program: str = "freehold") -> None:
    """Send spans to this OTLP/HTTP endpoint (`http://127.0.0.1:4318`), or nowhere when it is None.

    A second call replaces the first, after the spans that wait were sent.
    """
    global _provider, _tracer
    shutdown_tracing()
    if endpoint is None:
        return
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise FreeholdError(
            "observe.bad-endpoint",
            f"{endpoint!r} is not an http or https address",
            hint='Set observe.otlp_endpoint in freehold.toml to an address such as "http://127.0.0.1:4318"',
        )
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise FreeholdError(
            "observe.no-otel",
            f"observe.otlp_endpoint is {endpoint!r}, but OpenTelemetry is not installed",
            hint=f"{sys.executable} -m pip install 'freehold[otel]', or remove observe.otlp_endpoint from freehold.toml",
        ) from error
    address = endpoint if parts.path.strip("/") else endpoint.rstrip("/") + "/v1/traces"
    about = Resource.create({"service.name": program, "service.version": __version__})
    _provider = TracerProvider(resource=about, shutdown_on_exit=False)
    _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address, timeout=5)))
    _tracer = _provider.get_tracer("freehold", __version__)


def shutdown_tracing() -> None:
    """Send the spans that wait, for a few seconds at most, and stop. Idempotent; blocks."""
    global _provider, _tracer
    provider, _provider, _tracer = _provider, None, None
    _kept_parents.clear()
    if provider is not None:
        provider.shutdown()


def span(
    name: str,
    attributes: Mapping[str, Attribute] | None = None,
    *,
    parent: str | None = None,
    side: SpanSide = "internal",
) -> AbstractContextManager[TraceSpan]:
    """A span around a block. An exception that leaves the block is recorded by type and masked message.

    `parent` is what `trace_parent` returned; without it the span around this one is the parent.
    """
    return _NO_SPAN if _tracer is None else _traced(_tracer, name, attributes or {}, parent, side)


def begin_span(name: str, attributes: Mapping[str, Attribute], *, parent: str | None = None) -> OpenSpan:
    """A span that the caller ends."""
    if _tracer is None:
        return _NO_SPAN
    shown = {key: _mask_value(value) for key, value in attributes.items()}
    return _Traced(_tracer.start_span(name, context=_context_of(parent), attributes=shown))


def current_span() -> TraceSpan:
    """The span around the caller, to add attributes to it."""
    if _tracer is None:
        return _NO_SPAN
    from opentelemetry.trace import get_current_span

    return _Traced(get_current_span())


def trace_parent() -> str | None:
    """The present span in the form of the header `traceparent`, for another process; None when nothing is traced."""
    if _tracer is None:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent")


def keep_parent(name: str) -> None:
    """Keep the present span as the parent of later spans: of a turn for its prompt, of model requests for their turn."""
    parent = trace_parent()
    if parent is not None:
        _kept_parents[name] = parent
        _kept_parents.move_to_end(name)
        if len(_kept_parents) > MAX_KEPT_PARENTS:
            _kept_parents.popitem(last=False)


def find_parent(name: str) -> str | None:
    return _kept_parents.get(name)


def drop_parent(name: str) -> None:
    """Idempotent."""
    _kept_parents.pop(name, None)


class _Traced:
    def __init__(self, inner: "OtelSpan") -> None:
        self._inner = inner

    def set(self, name: str, value: Attribute) -> None:
        self._inner.set_attribute(name, _mask_value(value))

    def end(self, error: str | None = None) -> None:
        from opentelemetry.trace import StatusCode

        if error is not None:
            self._inner.set_attribute("error.type", mask_secrets(error)[:100])
            self._inner.set_status(StatusCode.ERROR)
        self._inner.end()


def _context_of(parent: str | None) -> "Context | None":
    """The context of a parent; None (the present one) when there is none, or the text is not a `traceparent`."""
    if parent is None or _TRACE_PARENT.fullmatch(parent) is None:
        return None
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": parent}, context=Context())


@contextmanager
def _traced(
    tracer: "Tracer", name: str, attributes: Mapping[str, Attribute], parent: str | None, side: SpanSide
) -> Iterator[TraceSpan]:
    from opentelemetry.trace import SpanKind, StatusCode

    shown = {key: _mask_value(value) for key, value in attributes.items()}
    # The SDK would record the message and the traceback unmasked.
    with tracer.start_as_current_span(
        name,
        context=_context_of(parent),
        kind=SpanKind[side.upper()],
        attributes=shown,
        record_exception=False,
        set_status_on_exception=False,
    ) as inner:
        try:
            yield _Traced(inner)
        except BaseException as error:
            inner.set_attribute("error.type", type(error).__qualname__)
            inner.set_status(StatusCode.ERROR, mask_secrets(str(error))[:500])
            raise


def _mask_value(value: Attribute) -> str | bool | int | float:
    if isinstance(value, Secret):
        return MASK
    return mask_secrets(value) if isinstance(value, str) else value
