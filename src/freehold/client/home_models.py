"""The replies about a Freehold as a whole, as frozen objects: the caller, the version, the health."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from freehold.client.models import ApiModel, Scope
from freehold.strict_json import IsoTime

ComponentStatus = Literal["ok", "degraded", "failed", "off", "starting"]


class Me(ApiModel):
    """The caller. `scopes` is None for a browser, which may do everything. `recovery` is the address of that page."""

    who: str
    did: str | None
    handle: str | None
    sign_in: str | None = None
    scopes: tuple[Scope, ...] | None
    slots: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    recovery: str = ""


class FeaturePageInfo(ApiModel):
    """A page of the control center that belongs to a feature."""

    path: str
    title: str


class FeatureInfo(ApiModel):
    name: str
    title: str
    pages: tuple[FeaturePageInfo, ...]


class Meta(ApiModel):
    version: str
    manifest_checksum: str
    slots: dict[str, str]
    slot_contracts: dict[str, int] = Field(default_factory=dict)
    features: tuple[FeatureInfo, ...] = ()
    metrics: str = ""


class ComponentPart(ApiModel):
    """One of the things of which a component has several, as a relay of the mesh. `seen` is when it was last well."""

    name: str
    state: ComponentStatus
    seen: IsoTime | None
    error: str | None


class ComponentInfo(ApiModel):
    name: str
    state: ComponentStatus
    since: datetime
    last_error: str | None
    required: bool
    parts: tuple[ComponentPart, ...] = ()


class HealthInfo(ApiModel):
    ready: bool
    components: tuple[ComponentInfo, ...]
