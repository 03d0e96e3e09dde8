"""The replies of `/v1/secrets` as frozen objects."""

from freehold.client.models import ApiModel


class SecretRecord(ApiModel):
    """A secret by its name. Its value is never shown. Moments are in seconds since 1970."""

    name: str
    set_at: float
    used_at: float | None


class SecretRef(ApiModel):
    name: str
