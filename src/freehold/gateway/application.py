"""The routes of the gateway and the guard before them. The front door loads this module at the first request."""

from collections.abc import Callable

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig

from freehold import __version__
from freehold.features import list_features, load_reference
from freehold.gateway.addresses import SiteAddresses
from freehold.gateway.context import RouteContext
from freehold.gateway.dispatch import add_dispatcher
from freehold.gateway.error_handlers import add_error_handlers
from freehold.gateway.guard import RequestGuard
from freehold.gateway.preview.app import PreviewApp
from freehold.gateway.preview.feature_site import FeatureSite
from freehold.gateway.principal import SignatureVerifier
from freehold.gateway.routes.agents import AgentRoutes
from freehold.gateway.routes.approvals import ApprovalRoutes
from freehold.gateway.routes.beads import BeadRoutes
from freehold.gateway.routes.credentials import CredentialRoutes
from freehold.gateway.routes.description import DescriptionRoutes
from freehold.gateway.routes.devices import DeviceRoutes
from freehold.gateway.routes.doctor import DoctorRoutes
from freehold.gateway.routes.egress import EgressRoutes
from freehold.gateway.routes.events import EventRoutes
from freehold.gateway.routes.files import FileRoutes
from freehold.gateway.routes.history import HistoryRoutes
from freehold.gateway.routes.memory import MemoryRoutes
from freehold.gateway.routes.models import ModelRoutes, SecretRoutes
from freehold.gateway.routes.offers import OfferRoutes
from freehold.gateway.routes.pages import add_pages
from freehold.gateway.routes.pods import PodRoutes
from freehold.gateway.routes.preview import PreviewRoutes
from freehold.gateway.routes.probes import ProbeRoutes
from freehold.gateway.routes.programs import ProgramRoutes
from freehold.gateway.routes.providers import ProviderRoutes
from freehold.gateway.routes.retention import RetentionRoutes
from freehold.gateway.routes.runs import RunRoutes
from freehold.gateway.routes.sessions import SessionRoutes
from freehold.gateway.routes.settings import SettingsRoutes
from freehold.gateway.routes.sign_in import SignInRoutes
from freehold.gateway.routes.slots import SlotRoutes
from freehold.gateway.routes.terminals import TerminalRoutes
from freehold.gateway.routes.timeline import TimelineRoutes
from freehold.gateway.routes.tour import TourRoutes
from freehold.gateway.routing import add_routes, read_route_table
from freehold.gateway.socket import SocketRoutes

ROUTE_GROUPS: tuple[Callable[[RouteContext], object], ...] = (
    ProbeRoutes,
    ProgramRoutes,
    DoctorRoutes,
    SignInRoutes,
    CredentialRoutes,
    DeviceRoutes,
    TimelineRoutes,
    RetentionRoutes,
    SettingsRoutes,
    EgressRoutes,
    ProviderRoutes,
    ModelRoutes,
    SecretRoutes,
    HistoryRoutes,
    FileRoutes,
    TerminalRoutes,
    PreviewRoutes,
    AgentRoutes,
    SessionRoutes,
    ApprovalRoutes,
    OfferRoutes,
    TourRoutes,
    SlotRoutes,
    BeadRoutes,
    PodRoutes,
    RunRoutes,
    EventRoutes,
    MemoryRoutes,
    SocketRoutes,
    DescriptionRoutes,
)
"""The groups of routes of the gateway. The routes of features follow. See `freehold.gateway.routing`."""

# FastAPI's own telemetry would contain request bodies and tracebacks unmasked, and an environment variable can turn it
# on. Only `freehold.observe` reports anything.
NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def describe_app() -> FastAPI:
    """An application with our error handlers and none of the framework's own routes."""
    app = FastAPI(
        title="Freehold",
        version=__version__,
        description="Your own agent computer. Sign in with a browser, or send `Authorization: Bearer fh_…`.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
        generate_unique_id_function=lambda route: route.name,
    )
    add_error_handlers(app)
    add_dispatcher(app)
    return app


def build_routes(context: RouteContext) -> FastAPI:
    """Every route and socket without the guard: for `build_app`, the API description and the benchmark."""
    app = describe_app()
    for group in (*ROUTE_GROUPS, *_feature_routes()):
        add_routes(app, group(context))
    add_pages(app)
    return app


def _feature_routes() -> tuple[Callable[[RouteContext], object], ...]:
    found = (feature.routes for feature in list_features() if feature.routes is not None)
    return tuple(load_reference(one) for routes in found for one in ((routes,) if isinstance(routes, str) else routes))


def build_guard(context: RouteContext, addresses: SiteAddresses) -> RequestGuard:
    """The routes, the previews and the guard before both."""
    app = build_routes(context)
    app.state.context = context
    services = context.services
    return RequestGuard(
        app,
        routes=read_route_table(app.routes),
        addresses=addresses,
        sign_ins=services.sign_ins,
        tokens=services.tokens,
        connections=services.connections,
        tickets=context.tickets,
        previews=PreviewApp(
            services,
            context.preview.hosts,
            context.preview.passes,
            addresses,
            {one.site_name: one for one in context.features.list() if isinstance(one, FeatureSite)},
        ),
        signatures=next((one for one in context.features.list() if isinstance(one, SignatureVerifier)), None),
    )
