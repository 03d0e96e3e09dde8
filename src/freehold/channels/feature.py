"""Channels as a feature."""

from freehold.features import CommandTopic, ControlCenterPage, Feature, WorkSigns

FEATURE = Feature(
    name="channels",
    title="Channels",
    section="freehold.channels.section:ChannelsSection",
    health="freehold.channels.health:make_probe",
    service="freehold.channels.service:ChannelService",
    work=WorkSigns(("channels_channel", "channels_subscription"), ("channels.*",)),
    routes="freehold.channels.routes:ChannelRoutes",
    metrics="freehold.channels.metrics:add_channel_metrics",
    commands={"channels": "freehold.channels.cli:command"},
    topic=CommandTopic.NETWORK,
    pages=(ControlCenterPage("/channels", "Channels"),),
)
