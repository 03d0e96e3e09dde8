"""Optional traces. Without an endpoint, OpenTelemetry is not imported and a span costs one call."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from freehold import __version__
from freehold.errors import FreeholdError
from freehold.observe.secrets import MASK, Secret, mask_secrets

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import Tracer

Attribute = str | bool | int | float | Secret


class TraceSpan(Protocol):
    def set(self, name: str, value: Attribute) -> None:
        """Add an attribute. Secrets are masked."""


class _NoSpan:
    """The span without tracing. One instance serves all."""

    def set(self, name: str, value: Attribute) -> None:
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
            hint="pip install 'freehold[otel]', or remove observe.otlp_endpoint from freehold.toml",
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
    if provider is not None:
        provider.shutdown()


def span(name: str, **attributes: Attribute) -> AbstractContextManager[TraceSpan]:
    """A span around a block. An exception that leaves the block is recorded by type and masked message."""
    return _NO_SPAN if _tracer is None else _traced(_tracer, name, attributes)


class _Traced:
    def __init__(self, inner: "OtelSpan") -> None:
        self._inner = inner

    def set(self, name: str, value: Attribute) -> None:
        self._inner.set_attribute(name, _mask_value(value))


@contextmanager
def _traced(tracer: "Tracer", name: str, attributes: dict[str, Attribute]) -> Iterator[TraceSpan]:
    from opentelemetry.trace import StatusCode

    shown = {key: _mask_value(value) for key, value in attributes.items()}
    # The SDK would record the message and the traceback unmasked.
    with tracer.start_as_current_span(
        name, attributes=shown, record_exception=False, set_status_on_exception=False
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
