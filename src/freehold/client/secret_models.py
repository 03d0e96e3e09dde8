"""The replies of `/v1/secrets` as frozen objects."""

from datetime import datetime

from freehold.client.models import ApiModel


class SecretRecord(ApiModel):
    """A secret by its name. Its value is never shown."""

    name: str
    set_at: datetime
    used_at: datetime | None


class SecretRef(ApiModel):
    name: str
