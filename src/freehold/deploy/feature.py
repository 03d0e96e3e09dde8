"""Deployments as a feature."""

from freehold.features import CommandTopic, Feature

FEATURE = Feature(
    name="deploy",
    title="Deployment",
    section="freehold.deploy.section:DeploySection",
    checks="freehold.deploy.checks",
    commands={"deploy": "freehold.deploy.cli:command", "health": "freehold.deploy.health_cli:command"},
    topic=CommandTopic.HOUSE,
)
