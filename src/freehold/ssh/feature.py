"""SSH access as a feature."""

from freehold.features import CommandTopic, ControlCenterPage, Feature

FEATURE = Feature(
    name="ssh",
    title="SSH access",
    section="freehold.ssh.section:SshSection",
    checks="freehold.ssh.checks",
    program="freehold.ssh.program:plan_program",
    health="freehold.ssh.health:make_probe",
    routes="freehold.ssh.routes:SshRoutes",
    metrics="freehold.ssh.metrics:add_ssh_metrics",
    commands={"ssh": "freehold.ssh.cli:command"},
    topic=CommandTopic.NETWORK,
    pages=(ControlCenterPage("/connect", "Connect"),),
)
