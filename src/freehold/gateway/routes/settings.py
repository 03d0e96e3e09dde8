"""Every setting of the manifest, and changes of those that are safe to change in the page."""

import asyncio
import os
from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, Field

from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import MAX_NUMBER, RequestBody
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import get, put
from freehold.manifest.change import change_manifest
from freehold.manifest.edit import Plain
from freehold.manifest.settings_list import SettingKind, SettingPlace, check_changeable, list_settings
from freehold.strict_json import encode

SettingNumber = Annotated[int, Field(ge=-MAX_NUMBER, le=MAX_NUMBER)]
SettingFraction = Annotated[float, Field(ge=-MAX_NUMBER, le=MAX_NUMBER)]
SettingText = Annotated[str, Field(max_length=1_000)]


class ManifestSettingBody(BaseModel):
    """A setting. `value` and `default` are as the manifest writes them; null when there is none.

    `waits`: the value takes effect after a restart. `line` is where it is, or where its section begins.
    """

    key: str
    kind: SettingKind
    choices: list[str]
    value: str | None
    default: str | None
    meaning: str
    place: SettingPlace
    file: str
    line: int | None
    is_live: bool
    can_change: bool
    waits: bool


class ManifestSectionBody(BaseModel):
    name: str
    meaning: str
    settings: list[ManifestSettingBody]


class ManifestSettingsBody(BaseModel):
    """`path` is the manifest on the host."""

    path: str
    sections: list[ManifestSectionBody]


class ChangeSettingBody(RequestBody):
    key: str = Field(max_length=200)
    value: (
        bool
        | SettingNumber
        | SettingFraction
        | SettingText
        | Annotated[list[SettingText], Field(max_length=500)]
        | None
    ) = Field(description="Null takes the setting out of the manifest: its default is used.")


class SettingsRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services
        self._follower = context.manifest_follower

    @get("/v1/settings", scope="admin")
    async def list_settings(self) -> ManifestSettingsBody:
        """Every setting with its value, where it is set, and whether it can be changed here."""
        services = self._services
        path = services.loaded.path
        found = await asyncio.to_thread(list_settings, path, os.environ, services.manifest, home=services.home.root)
        return ManifestSettingsBody.model_validate({"path": str(path), "sections": encode(found)})

    @put("/v1/settings", scope="admin")
    async def change_setting(self, body: ChangeSettingBody, request: Request) -> ManifestSettingsBody:
        """Change one setting in the manifest. Its comments stay. One that would be an error is refused."""
        check_changeable(body.key)
        value: Plain | None = [*body.value] if isinstance(body.value, list) else body.value
        path = self._services.loaded.path
        file = await asyncio.to_thread(change_manifest, path, {body.key: value}, os.environ)
        await self._follower.apply()
        data = {"key": body.key, "file": file.name}
        who = principal_of(request.scope).who
        await asyncio.to_thread(self._services.timeline.append, "manifest.setting_changed", data, who=who)
        return await self.list_settings()
