"""The variables of a deployment, for a platform that has no file of its own kind."""

from freehold.deploy.deployment import OFFERED_KEYS, Deployment
from freehold.manifest.environment import NAMED_VARIABLES
from freehold.manifest.problem import show_key

HEAD = """\
# Written by `freehold deploy env` from freehold.toml, for the container of Freehold itself.
# Fill in what has no value. Give none of these to the computer.
"""


def write_environment(deployment: Deployment) -> str:
    lines = []
    for name, value in deployment.environment.items():
        if value is not None:
            lines.append(f"{name}={value}")
            continue
        if name in NAMED_VARIABLES:
            lines.append(f"# {show_key(NAMED_VARIABLES[name])} of the manifest; this wins")
        elif name in OFFERED_KEYS:
            lines.append(f"# a key of {OFFERED_KEYS[name]}; the control center offers to connect it")
        else:
            lines.append("# named by the manifest")
        lines.append(f"#{name}=")
    return HEAD + "".join(f"{line}\n" for line in lines)
