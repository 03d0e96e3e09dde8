"""What the groups of routes get at construction."""

from dataclasses import dataclass, field

from freehold.agents.sessions.service import SessionService
from freehold.agents.tour import Tour
from freehold.features import list_features
from freehold.gateway.doctor_runner import DoctorRunner
from freehold.gateway.download_tickets import DownloadTickets
from freehold.gateway.feature_services import FS, FeatureServices
from freehold.gateway.manifest_follower import ManifestFollower
from freehold.gateway.preview.hosts import PreviewHosts
from freehold.gateway.preview.listeners import PortMonitor
from freehold.gateway.preview.passes import PreviewPasses, read_key
from freehold.gateway.services import Services
from freehold.gateway.session_service import open_session_service
from freehold.gateway.sign_in import SignInService
from freehold.gateway.topic_publisher import TopicPublisher
from freehold.gateway.topics import Topic
from freehold.mcp.servers import McpServers


@dataclass(frozen=True)
class PreviewParts:
    """The host names of previews, the passes that open them, and the ports that can be shown."""

    hosts: PreviewHosts
    passes: PreviewPasses
    ports: PortMonitor


@dataclass(frozen=True)
class RouteContext:
    """Every group of routes is constructed with one of these and nothing else."""

    services: Services
    publisher: TopicPublisher
    doctor: DoctorRunner
    sign_in: SignInService
    tickets: DownloadTickets
    preview: PreviewParts
    sessions: SessionService
    manifest_follower: ManifestFollower
    tour: Tour
    mcp: McpServers
    features: FeatureServices = field(init=False)
    """The application runs them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", FeatureServices(self, list_features()))

    def service(self, kind: type[FS]) -> FS:
        """The service of a feature, by its class."""
        return self.features.find(kind)


def make_context(services: Services, publisher: TopicPublisher) -> RouteContext:
    """Nothing runs yet: the application's lifespan starts what has a `run` method."""
    topics = publisher.topics
    preview = PreviewParts(
        PreviewHosts(services.manifest, [feature.name for feature in list_features() if feature.has_site]),
        PreviewPasses(read_key(services.home), services.sign_ins, services.tokens),
        PortMonitor(
            lambda: services.computer,
            {one.port: name for name, one in services.manifest.computer.services.items() if one.port is not None},
            topics.add(Topic("ports", kept=20)),
        ),
    )
    sessions, mcp = open_session_service(services, publisher, preview.ports, preview.hosts)
    return RouteContext(
        services=services,
        publisher=publisher,
        doctor=DoctorRunner(services.home, services.timeline, topics.add(Topic("doctor", kept=200))),
        sign_in=SignInService(services),
        tickets=DownloadTickets(services.sign_ins),
        preview=preview,
        sessions=sessions,
        mcp=mcp,
        manifest_follower=ManifestFollower(services.current, services.computer_access),
        tour=Tour(services.models, sessions),
    )
