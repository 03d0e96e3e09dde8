"""The replies of `/v1/credentials` as frozen objects."""

from datetime import datetime

from freehold.client.models import ApiModel


class CredentialUseInfo(ApiModel):
    """One request that carried the secret."""

    at: datetime
    session: str
    method: str
    path: str


class CredentialInfo(ApiModel):
    name: str
    host: str
    secret: str
    has_secret: bool
    header: str
    paths: tuple[str, ...]
    methods: tuple[str, ...]
    writes: str
    tools: tuple[str, ...]
    variables: tuple[str, ...]
    ends_tls: bool
    uses: int
    recent: tuple[CredentialUseInfo, ...]
