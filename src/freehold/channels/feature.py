"""Channels as a feature."""

from freehold.features import ControlCenterPage, Feature

FEATURE = Feature(
    name="channels",
    title="Channels",
    section="freehold.channels.section:ChannelsSection",
    health="freehold.channels.health:make_probe",
    service="freehold.channels.service:ChannelService",
    routes="freehold.channels.routes:ChannelRoutes",
    commands={"channels": "freehold.channels.cli:command"},
    pages=(ControlCenterPage("/channels", "Channels"),),
)
