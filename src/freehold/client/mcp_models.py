"""The replies of `/v1/mcp` as frozen objects."""

from freehold.client.models import ApiModel


class McpToolInfo(ApiModel):
    """A tool as its server described it last."""

    name: str
    description: str
    parameters: str
    digest: str
    allowed: bool
    changed: bool


class McpServerInfo(ApiModel):
    name: str
    kind: str
    place: str
    on: bool
    enabled: bool
    asks: bool
    signed_in: bool | None = None
    tools: tuple[McpToolInfo, ...]


class McpAnswer(ApiModel):
    text: str
    failed: bool


class McpSignInAddress(ApiModel):
    address: str
