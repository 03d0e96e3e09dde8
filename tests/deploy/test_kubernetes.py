"""The files for Kubernetes: what they are, that every version takes them, and that a cluster is asked before."""

import json
import shutil
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner, Result

from freehold.deploy import deployment as deployments
from freehold.deploy.cli import command
from freehold.deploy.deployment import Deployment, ImageNames, read_deployment
from freehold.deploy.kubernetes import (
    FLEET_FILE,
    FREEHOLD_FILE,
    MONITOR_FILE,
    NAMESPACE_FILE,
    PodController,
    write_kubernetes,
)
from freehold.deploy.ray_cluster import RAY_VERSION
from freehold.errors import FreeholdError
from freehold.home import find_home

HERE = Path(__file__).parent
PUBLIC = """
[owner]
did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
[gateway]
public_url = "https://agent.example.com"
"""
EVERYTHING = f"""{PUBLIC}
preview_url = "https://preview.example.net"
[observe]
metrics_host = "0.0.0.0"
[security.exceptions.public-metrics]
reason = "the scraper is in the same cluster"
[computer.limits]
memory = "1GiB"
cpus = 1.5
[models.other]
kind = "openai"
base_url = "https://models.example.com/v1"
key = "env:OTHER_KEY"
[deploy]
memory = "1GiB"
[deploy.kubernetes]
namespace = "agents"
storage = "10GiB"
storage_class = "fast"
ingress_class = "nginx"
ingress_namespace = "ingress-nginx"
private_networks = ["10.96.0.0/12"]
seccomp_profile = "profiles/freehold.json"
"""
FLEET = f"""{EVERYTHING}
[deploy.kubernetes.fleet]
image = "registry.example.com/freehold-fleet:1"
nodes = 2
max_nodes = 8
cpus = 8
memory = "16GiB"
disk = "40GiB"
idle = "10m"
"""
SMALL_FLEET = f"""{PUBLIC}
[deploy.kubernetes.fleet]
image = "registry.example.com/freehold-fleet:1"
"""
IMAGES = ImageNames("registry.example.com/freehold-brain:1", "registry.example.com/freehold:1")
VERSIONS = ("1.33", "1.34", "1.35", "1.36", "1.37")
CRDS = {"ServiceMonitor": "service-monitor.json", "Sandbox": "sandbox.json", "RayCluster": "ray-cluster.json"}
KUBECTL = shutil.which("kubectl")
ReadDeployment = Callable[[str], Deployment]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReadDeployment:
    """The deployment of a manifest, without what changes with each version."""
    monkeypatch.setattr(deployments, "__version__", "1.0.0")
    monkeypatch.delenv("OWNER_DID", raising=False)

    def read(manifest: str) -> Deployment:
        (tmp_path / "freehold.toml").write_text(manifest)
        return replace(read_deployment(find_home(tmp_path), IMAGES, "pod"), checksum="0" * 64)

    return read


def parse(files: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Every object by its kind, as a parser reads them that others wrote."""
    objects = [one for text in files.values() for one in yaml.safe_load_all(text)]
    assert len({one["kind"] for one in objects}) == len(objects)
    return {one["kind"]: one for one in objects}


def describe(read: ReadDeployment, manifest: str, controller: PodController = "statefulset") -> dict[str, Any]:
    return parse(write_kubernetes(read(manifest), manifest, controller))


@pytest.mark.parametrize(("name", "manifest"), [("plain", PUBLIC), ("everything", EVERYTHING)])
def test_the_files_of_known_manifests(read: ReadDeployment, name: str, manifest: str) -> None:
    """A difference is shown by pytest. If it is meant, write the file again from what the test saw."""
    for file, text in write_kubernetes(read(manifest), manifest, "statefulset").items():
        assert text == (HERE / "golden/kubernetes" / f"{name}-{file}").read_text()


@pytest.mark.parametrize("manifest", [PUBLIC, EVERYTHING], ids=["plain", "everything"])
def test_every_supported_version_of_kubernetes_takes_the_files(read: ReadDeployment, manifest: str) -> None:
    """Strictly, by the schemas of its own API: no field is unknown, misplaced or of another type."""
    objects = describe(read, manifest)
    for version in VERSIONS:
        for kind, one in objects.items():
            if kind not in CRDS:
                assert kubernetes_validate.validate(one, version, strict=True) == version


def test_the_strict_check_can_fail(read: ReadDeployment) -> None:
    """A word that Kubernetes does not know, at the deepest place that matters."""
    one = describe(read, PUBLIC)["StatefulSet"]
    one["spec"]["template"]["spec"]["containers"][0]["securityContext"]["procMounts"] = "Unmasked"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(one, VERSIONS[0], strict=True)


def check_custom(one: dict[str, Any]) -> None:
    """Against the schema of its custom resource. Unknown fields are refused, as the API server does when asked to."""
    schema = json.loads((HERE / "crds" / CRDS[one["kind"]]).read_text())
    jsonschema.Draft202012Validator(refuse_unknown(schema)).validate(one)


def refuse_unknown(schema: Any) -> Any:
    if isinstance(schema, list):
        return [refuse_unknown(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: refuse_unknown(value) for name, value in schema.items()}
    is_open = "additionalProperties" in schema or "x-kubernetes-preserve-unknown-fields" in schema
    # Only a schema has a `type` that is a text; a list of properties may have one that is a schema.
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict) and not is_open:
        closed["additionalProperties"] = False
    return closed


def test_the_operator_of_prometheus_and_agent_sandbox_take_their_files(read: ReadDeployment) -> None:
    objects = describe(read, EVERYTHING, "sandbox")
    assert "StatefulSet" not in objects, "one home has one pod"
    for kind in ("ServiceMonitor", "Sandbox"):
        check_custom(objects[kind])
    objects["Sandbox"]["spec"]["podTemplate"]["spec"]["hostUser"] = False
    with pytest.raises(jsonschema.ValidationError):
        check_custom(objects["Sandbox"])
    spec = describe(read, EVERYTHING, "sandbox")["Sandbox"]["spec"]
    stateful = describe(read, EVERYTHING)["StatefulSet"]["spec"]
    assert spec["podTemplate"] == stateful["template"]
    assert spec["volumeClaimTemplates"] == stateful["volumeClaimTemplates"]


@pytest.mark.parametrize(("name", "manifest"), [("fleet", FLEET), ("small-fleet", SMALL_FLEET)])
def test_kuberay_takes_the_cluster_of_a_fleet(read: ReadDeployment, name: str, manifest: str) -> None:
    files = write_kubernetes(read(manifest), manifest, "statefulset")
    assert files[FLEET_FILE] == (HERE / "golden/kubernetes" / f"{name}-{FLEET_FILE}").read_text()
    check_custom(parse(files)["RayCluster"])


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: spec["workerGroupSpecs"][0]["template"]["spec"].update(hostUser=False),
        lambda spec: spec["headGroupSpec"]["template"]["spec"]["containers"][0]["securityContext"].update(
            procMounts=""
        ),
        lambda spec: spec["authOptions"].update(mode="none"),
        lambda spec: spec["workerGroupSpecs"][0].pop("groupName"),
        lambda spec: spec.update(autoscaling=True),
    ],
    ids=["pod", "container", "choice", "missing", "top"],
)
def test_the_strict_check_of_a_ray_cluster_can_fail(
    read: ReadDeployment, change: Callable[[dict[str, Any]], None]
) -> None:
    one = describe(read, FLEET)["RayCluster"]
    change(one["spec"])
    with pytest.raises(jsonschema.ValidationError):
        check_custom(one)


def test_a_ray_cluster_has_no_privilege_no_open_door_and_no_key(read: ReadDeployment) -> None:
    objects = describe(read, FLEET)
    spec = objects["RayCluster"]["spec"]
    assert spec["authOptions"] == {"mode": "token", "secretName": "freehold-fleet"}
    assert spec["tlsOptions"] == {"enabled": True}
    labels = objects["RayCluster"]["metadata"]["labels"]
    assert labels != objects["Service"]["spec"]["selector"], "nobody is led to a node in the place of Freehold"
    reached = objects["NetworkPolicy"]["spec"]["egress"][1]["to"]
    assert {"podSelector": {"matchLabels": {"ray.io/cluster": "freehold-fleet"}}} in reached
    policy = spec["networkPolicy"]
    assert policy["mode"] == "DenyAll"
    freehold = {"podSelector": {"matchLabels": objects["StatefulSet"]["spec"]["selector"]["matchLabels"]}}
    for who in ("head", "worker"):
        assert policy[who]["ingressRules"] == [{"from": [freehold]}]
    assert [rule for rule in policy["worker"]["egressRules"] if "to" in rule] == []
    head, (worker,) = spec["headGroupSpec"]["template"], [one["template"] for one in spec["workerGroupSpecs"]]
    for pod in (head["spec"], worker["spec"]):
        assert pod["hostUsers"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        (container,) = pod["containers"]
        walls = container["securityContext"]
        assert (walls["allowPrivilegeEscalation"], walls["readOnlyRootFilesystem"]) == (False, True)
        assert walls["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert not [one for one in container["env"] if "TOKEN" in one["name"] or "KEY" in one["name"]]
    own = objects["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]["securityContext"]
    assert worker["spec"]["containers"][0]["securityContext"] == own, "computers are sealed there as they are here"
    assert "procMount" not in head["spec"]["containers"][0]["securityContext"], "the head has no computers"
    assert worker["spec"]["automountServiceAccountToken"] is False


def test_a_fleet_that_does_not_grow_has_no_account_of_the_cluster_at_all(read: ReadDeployment) -> None:
    spec = describe(read, SMALL_FLEET)["RayCluster"]["spec"]
    assert spec["enableInTreeAutoscaling"] is False
    assert spec["headGroupSpec"]["template"]["spec"]["automountServiceAccountToken"] is False
    group = spec["workerGroupSpecs"][0]
    assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (1, 1, 1)
    assert "RayCluster" not in describe(read, EVERYTHING), "only who asks for it gets one"


def test_a_fleet_that_grows_must_reach_the_cluster(read: ReadDeployment) -> None:
    manifest = SMALL_FLEET + "max_nodes = 3\n"
    with pytest.raises(FreeholdError) as caught:
        write_kubernetes(read(manifest), manifest, "statefulset")
    assert caught.value.code == "deploy.unsupported"
    assert "private_networks" in caught.value.hint


def test_the_version_of_ray_is_the_one_that_is_installed_with_the_fleet() -> None:
    extras = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert f"ray=={RAY_VERSION}" in extras["fleet"]


def test_the_monitor_names_a_port_that_the_service_has(read: ReadDeployment) -> None:
    objects = describe(read, EVERYTHING)
    (endpoint,) = objects["ServiceMonitor"]["spec"]["endpoints"]
    ports = {one["name"]: one["targetPort"] for one in objects["Service"]["spec"]["ports"]}
    assert ports[endpoint["port"]] == 9091
    assert "ServiceMonitor" not in describe(read, PUBLIC), "without the exception nobody reaches the metrics"


def test_the_pod_has_no_privilege_and_no_way_to_the_cluster(read: ReadDeployment) -> None:
    """All that the level `restricted` asks for, but for the two settings with which the computer is sealed."""
    pod = describe(read, PUBLIC)["StatefulSet"]["spec"]["template"]["spec"]
    assert pod["hostUsers"] is False
    assert pod["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"} & set(pod)
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 64242)
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*pod["initContainers"], *pod["containers"]):
        walls = container["securityContext"]
        assert (walls["allowPrivilegeEscalation"], walls["readOnlyRootFilesystem"]) == (False, True)
        assert walls["capabilities"] == {"drop": ["ALL"]}
        assert "privileged" not in walls
        assert set(container["resources"]["limits"]) >= {"cpu", "memory"}
    assert set(pod["containers"][0]["securityContext"]) - set(pod["initContainers"][0]["securityContext"]) == {
        "procMount",
        "seccompProfile",
    }
    kinds = {kind for volume in pod["volumes"] for kind in volume if kind != "name"}
    assert kinds == {"configMap", "emptyDir"}


def test_a_filter_on_the_nodes_lowers_what_the_namespace_must_allow(read: ReadDeployment) -> None:
    def find_level(manifest: str) -> str:
        labels: dict[str, str] = describe(read, manifest)["Namespace"]["metadata"]["labels"]
        return labels["pod-security.kubernetes.io/enforce"]

    assert (find_level(PUBLIC), find_level(EVERYTHING)) == ("privileged", "baseline")


def test_two_freeholds_never_write_one_home(read: ReadDeployment) -> None:
    """One replica of a kind that starts a pod only when the last is known to be gone, and a volume for one pod."""
    spec = describe(read, PUBLIC)["StatefulSet"]["spec"]
    assert spec["replicas"] == 1
    assert spec["volumeClaimTemplates"][0]["spec"]["accessModes"] == ["ReadWriteOncePod"]
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert describe(read, PUBLIC)["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 0


def test_a_change_of_the_manifest_starts_the_pod_anew_and_its_limits_are_those_of_the_pod(tmp_path: Path) -> None:
    before = deploy_and_read(tmp_path, PUBLIC)
    after = deploy_and_read(tmp_path, PUBLIC + '[computer.limits]\nmemory = "1GiB"\ncpus = 4\n')
    templates = [one["StatefulSet"]["spec"]["template"] for one in (before, after)]
    sums = [one["metadata"]["annotations"]["freehold.manifest"] for one in templates]
    assert sums[0] != sums[1]
    limits = [one["spec"]["containers"][0]["resources"]["limits"] for one in templates]
    assert [one["memory"] for one in limits] == [str(6 << 30), str(3 << 30)]
    assert [one["cpu"] for one in limits] == ["3", "5"]


def test_nobody_reaches_the_pod_but_by_its_gateway_and_it_reaches_no_private_network(read: ReadDeployment) -> None:
    policy = describe(read, EVERYTHING)["NetworkPolicy"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    ports = {one["ports"][0]["port"]: one.get("from") for one in policy["ingress"]}
    assert set(ports) == {3000, 2222, 9091}
    assert ports[3000] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}]
    names, out = policy["egress"]
    assert {one["port"] for one in names["ports"]} == {53}
    blocks = [one["ipBlock"] for one in out["to"]]
    assert "169.254.0.0/16" in blocks[0]["except"], "where a cloud gives machines their credentials"
    assert [one["cidr"] for one in blocks if "except" not in one] == ["10.96.0.0/12"]


def test_no_key_is_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each comes from a secret that the owner makes, and may be missing."""
    monkeypatch.setenv("OTHER_KEY", "sk-0123456789abcdef")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    objects = deploy_and_read(tmp_path, EVERYTHING)
    assert all("sk-0123" not in path.read_text() for path in (tmp_path / "out").iterdir())
    variables = {one["name"]: one for one in objects["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]["env"]}
    for name in ("OTHER_KEY", "OPENAI_API_KEY"):
        assert variables[name]["valueFrom"] == {"secretKeyRef": {"name": "freehold", "key": name, "optional": True}}


def deploy(home: Path, *words: str) -> Result:
    images = ["--brain-image", "brain:1", "--computer-image", "computer:1"]
    return CliRunner().invoke(command, ["kubernetes", str(home / "out"), "--home", str(home), *images, *words])


def deploy_and_read(home: Path, manifest: str) -> dict[str, dict[str, Any]]:
    (home / "freehold.toml").write_text(manifest)
    done = deploy(home)
    assert done.exit_code == 0, done.output
    return parse({path.name: path.read_text() for path in (home / "out").glob("*.yaml")})


def expect_error(done: Result) -> FreeholdError:
    assert isinstance(done.exception, FreeholdError)
    return done.exception


def test_a_check_tells_when_the_files_have_drifted(tmp_path: Path) -> None:
    deploy_and_read(tmp_path, PUBLIC)
    assert deploy(tmp_path, "--check").exit_code == 0
    file = tmp_path / "out" / FREEHOLD_FILE
    file.write_text(file.read_text().replace("      hostUsers: false\n", ""))
    caught = expect_error(deploy(tmp_path, "--check"))
    assert caught.code == "deploy.drifted"
    assert "+      hostUsers: false" in caught.message
    assert caught.hint == f"Write it again: freehold deploy kubernetes {tmp_path / 'out'}"


def test_kubectl_takes_the_whole_folder(tmp_path: Path) -> None:
    """It reads every file that ends with yaml or json, so nothing else may be there under such a name."""
    deploy_and_read(tmp_path, EVERYTHING)
    found = {path.name for path in (tmp_path / "out").iterdir()}
    assert found == {NAMESPACE_FILE, FREEHOLD_FILE, MONITOR_FILE, "freehold.seccomp"}
    profile = json.loads((tmp_path / "out/freehold.seccomp").read_text())
    refused = {name for one in profile["syscalls"] for name in one["names"]}
    assert {"bpf", "kexec_load", "init_module", "open_by_handle_at", "io_uring_setup"} <= refused
    assert not refused & {"unshare", "mount", "pivot_root"}


@pytest.mark.parametrize(
    ("addition", "wanted"),
    [
        ("[deploy]\ncaddy = true\n", "deploy.caddy is true"),
        ('[backup]\nto = "/mnt/backup"\n', "backup.to is /mnt/backup"),
        ('[[computer.mounts]]\nsource = "/usr/share/doc"\ntarget = "/mnt/doc"\n', "/mnt/doc is /usr/share/doc"),
    ],
)
def test_what_a_pod_does_not_have_is_refused(tmp_path: Path, addition: str, wanted: str) -> None:
    (tmp_path / "freehold.toml").write_text(PUBLIC + addition)
    caught = expect_error(deploy(tmp_path))
    assert caught.code == "deploy.unsupported"
    assert wanted in caught.message
    assert not (tmp_path / "out").exists()


# A cluster is asked: real kubectl, and a server that answers as an API server does.


@dataclass
class ApiAnswer:
    """`change` is what the cluster makes of the pod; `refusal` is what it says in its place."""

    change: Callable[[dict[str, Any]], None] = lambda pod: None
    refusal: tuple[int, str, str] | None = None
    asked: str = ""


@contextmanager
def api_server(answer: ApiAnswer, folder: Path) -> Iterator[Path]:
    """Yields the configuration with which kubectl reaches it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            pod = json.loads(self._read_body())
            answer.asked = self.path
            status, body = 201, pod
            if answer.refusal is None:
                answer.change(pod)
            else:
                status, reason, message = answer.refusal
                body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status}
                body |= {"reason": reason, "message": message}
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _read_body(self) -> bytes:
            if "Content-Length" in self.headers:
                return self.rfile.read(int(self.headers["Content-Length"]))
            data = b""
            while size := int(self.rfile.readline(), 16):  # in chunks, each with its size before it
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data

        def log_message(self, *words: object) -> None:
            """Nothing is printed."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        config = folder / "kubeconfig"
        address = f"http://127.0.0.1:{server.server_address[1]}"
        described = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "here", "cluster": {"server": address}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "nobody"}}],
            "users": [{"name": "nobody", "user": {}}],
            "current-context": "here",
        }
        config.write_text(json.dumps(described))
        yield config
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ask_cluster(home: Path, answer: ApiAnswer, monkeypatch: pytest.MonkeyPatch) -> Result:
    (home / "freehold.toml").write_text(PUBLIC)
    with api_server(answer, home) as config:
        monkeypatch.setenv("KUBECONFIG", str(config))
        return deploy(home, "--try")


needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


@needs_kubectl
def test_a_cluster_is_asked_and_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = ApiAnswer()
    done = ask_cluster(tmp_path, answer, monkeypatch)
    assert done.exit_code == 0, done.output
    assert "The cluster takes the pod as it is." in done.output
    assert answer.asked == "/api/v1/namespaces/freehold/pods?dryRun=All&fieldValidation=Strict"


@needs_kubectl
@pytest.mark.parametrize(
    ("forbidden", "named"),
    [
        ('procMount (container "freehold" must not set securityContext.procMount to "Unmasked")', "procMount: Unmasked"),
        ('seccompProfile (container "freehold" must not set securityContext.seccompProfile.type to "Unconfined")', "seccompProfile: Unconfined"),
        ("spec.hostUsers: Forbidden: when `pod.Spec.HostUsers` is set", "hostUsers: false"),
    ],
    ids=["procMount", "seccomp", "hostUsers"],
)  # fmt: skip
def test_a_cluster_that_forbids_a_setting_is_told_apart_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forbidden: str, named: str
) -> None:
    message = f'pods "freehold-0" is forbidden: violates PodSecurity "baseline:latest": {forbidden}'
    caught = expect_error(ask_cluster(tmp_path, ApiAnswer(refusal=(403, "Forbidden", message)), monkeypatch))
    assert caught.code == "deploy.refused"
    assert f"It forbids: {named}" in caught.message
    assert forbidden in caught.message
    assert "freehold deploy compose" in caught.hint


def forget_users(pod: dict[str, Any]) -> None:
    del pod["spec"]["hostUsers"]


def mask_proc(pod: dict[str, Any]) -> None:
    del pod["spec"]["containers"][0]["securityContext"]["procMount"]


def filter_calls(pod: dict[str, Any]) -> None:
    pod["spec"]["containers"][0]["securityContext"]["seccompProfile"] = {"type": "RuntimeDefault"}


@needs_kubectl
@pytest.mark.parametrize(
    ("change", "named"),
    [
        (forget_users, "hostUsers: false"),
        (mask_proc, "procMount: Unmasked"),
        (filter_calls, "seccompProfile"),
    ],
)
def test_a_cluster_that_silently_leaves_a_setting_out_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], None], named: str
) -> None:
    """An API server drops what its version does not know, and a policy may change what it does not like."""
    caught = expect_error(ask_cluster(tmp_path, ApiAnswer(change), monkeypatch))
    assert caught.code == "deploy.refused"
    assert f"leaves out: {named}" in caught.message


@needs_kubectl
def test_a_missing_namespace_and_a_silent_cluster_have_their_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = (404, "NotFound", 'namespaces "freehold" not found')
    caught = expect_error(ask_cluster(tmp_path, ApiAnswer(refusal=refusal), monkeypatch))
    assert caught.code == "deploy.missing"
    config = tmp_path / "kubeconfig"  # of the server that is gone
    monkeypatch.setenv("KUBECONFIG", str(config))
    caught = expect_error(deploy(tmp_path, "--try"))
    assert caught.code == "deploy.no-answer"


def test_without_kubectl_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "freehold.toml").write_text(PUBLIC)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert expect_error(deploy(tmp_path, "--try")).code == "deploy.no-program"
