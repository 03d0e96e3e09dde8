"""Sites that a feature shows to the owner, such as an editor: each on the origin of a preview with its own name."""

from typing import Protocol, runtime_checkable

from starlette.types import Receive, Scope, Send

from freehold.gateway.preview.hosts import PreviewSite


@runtime_checkable
class FeatureSite(Protocol):
    """The service of a feature with `has_site`. Only browsers of the owner reach it: the preview checks the pass and the source."""

    site_name: str
    """The name of the feature, and the first label of the host."""
    is_enabled: bool

    @property
    def is_running(self) -> bool: ...

    async def serve_site(self, site: PreviewSite, scope: Scope, receive: Receive, send: Send) -> None:
        """One request or socket. Starts what it needs. Raises FreeholdError before the answer has begun."""
        ...

    async def start_site(self) -> None:
        """Returns when it can be shown. Idempotent. Raises the reason why it cannot start."""
        ...

    async def stop_site(self) -> None:
        """Ends its programs. Idempotent."""
        ...
