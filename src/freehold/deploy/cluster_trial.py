"""Asks a cluster, by way of kubectl, whether it takes a pod with everything that a sealed computer needs."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping

from freehold.deploy.yaml_text import YamlValue
from freehold.errors import FreeholdError

TIMEOUT = 60.0
MAX_SHOWN = 1000
SETTINGS = {
    "hostUsers": "hostUsers: false",
    "procMount": "procMount: Unmasked",
    "seccomp": "seccompProfile: Unconfined, or the profile of deploy.kubernetes.seccomp_profile",
}
"""What some clusters forbid or do not know, by the word that is in their refusal."""
ELSEWHERE = "Allow it in this cluster, or use two containers on a machine of your own: freehold deploy compose"


def try_pod(pod: Mapping[str, YamlValue], namespace: str) -> None:
    """Raises `deploy.refused` with the settings that the cluster forbids or leaves out. Nothing is created."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise FreeholdError(
            "deploy.no-program",
            "kubectl, with which a cluster is asked, is not installed",
            hint="Install kubectl and give it your cluster, or write the files without --try",
        )
    place = f"/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Strict"
    try:
        done = subprocess.run(
            [kubectl, "create", "--raw", place, "-f", "-"],
            input=json.dumps(pod), capture_output=True, text=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip
        answer = json.loads(done.stdout) if done.returncode == 0 else {}
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise FreeholdError(
            "deploy.no-answer",
            f"The cluster gave no answer: {str(error)[:MAX_SHOWN]}",
            hint="Ask it yourself: kubectl version",
        ) from error
    if done.returncode != 0:
        raise _explain_refusal(done.stderr.strip(), namespace)
    if missing := list(_find_left_out(pod, answer)):
        raise FreeholdError(
            "deploy.refused",
            f"The cluster takes the pod, but leaves out: {'; '.join(missing)}",
            hint=f"Kubernetes 1.33 or later has all of it. {ELSEWHERE}",
        )


def _explain_refusal(said: str, namespace: str) -> FreeholdError:
    shown = said[:MAX_SHOWN] or "no reason"
    if f'namespaces "{namespace}" not found' in said:
        return FreeholdError(
            "deploy.missing",
            f"The cluster has no namespace {namespace} yet",
            hint="kubectl apply -f FOLDER/00-namespace.yaml, then try again",
        )
    named = [words for word, words in SETTINGS.items() if word in said]
    if "forbidden" in said.lower() or "invalid" in said.lower() or "denied" in said.lower():
        what = f" It forbids: {'; '.join(named)}." if named else ""
        return FreeholdError("deploy.refused", f"The cluster refuses the pod.{what}\n{shown}", hint=ELSEWHERE)
    return FreeholdError(
        "deploy.no-answer", f"The cluster could not be asked: {shown}", hint="Ask it yourself: kubectl version"
    )


def _find_left_out(pod: Mapping[str, YamlValue], answer: object) -> Iterator[str]:
    """A cluster that does not know a field, or has a policy that changes it, takes the pod without it."""
    spec, found = (_dig(one, "spec") for one in (pod, answer))
    wall, seen = (_dig(one, "containers", 0, "securityContext") for one in (spec, found))
    if _dig(found, "hostUsers") is not False:
        yield SETTINGS["hostUsers"]
    if _dig(seen, "procMount") != _dig(wall, "procMount"):
        yield SETTINGS["procMount"]
    if _dig(seen, "seccompProfile") != _dig(wall, "seccompProfile"):
        yield SETTINGS["seccomp"]


def _dig(tree: object, *path: str | int) -> object:
    """What is there in a tree of JSON; None if there is nothing."""
    for step in path:
        if isinstance(step, str) and isinstance(tree, Mapping):
            tree = tree.get(step)
        elif isinstance(step, int) and isinstance(tree, list) and len(tree) > step:
            tree = tree[step]
        else:
            return None
    return tree
