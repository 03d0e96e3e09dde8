"""Credentials as a feature."""

from freehold.features import CommandTopic, ControlCenterPage, Feature

FEATURE = Feature(
    name="credentials",
    title="Credentials",
    section="freehold.credentials.section:CredentialsSection",
    checks="freehold.credentials.checks",
    routes="freehold.credentials.routes:HostCredentialRoutes",
    commands={"credentials": "freehold.credentials.cli:command"},
    topic=CommandTopic.NETWORK,
    pages=(ControlCenterPage("/credentials", "Credentials"),),
)
