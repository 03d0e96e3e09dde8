"""A pod that really runs, from the file that Freehold writes: what a kubelet asks of runc, asked without a cluster.

Every field of the pod is read. One that is not known here fails, so that nothing of the file is silently left out. The
images have the folders and users of the real ones, and no programs: the pod sees the /usr of this machine and this
checkout, read-only.
"""

import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.compose import describe_override, pack_image
from tests.support.condition import wait_until

from freehold.computer.engine.filter_profile import make_short_profile
from freehold.computer.walls.inside import TOP_LEVEL
from freehold.deploy.deployment import SYSTEM_FOLDER
from freehold.images.kinds import BRAIN, BRAIN_HOME

RUNC = "/usr/sbin/runc"
READY_SECONDS = 90.0
PROBE_SECONDS = 0.2
POD_ADDRESS = "10.42.0.7"
BRAIN_IMAGE, COMPUTER_IMAGE = "brain:1", "computer:1"
FIRST_UID, UIDS = 1_000_000, 65_536
"""The users of this machine that a pod with a user namespace has in the place of 0 to 65535."""
CAPABILITY_SETS = ("bounding", "effective", "inheritable", "permitted", "ambient")
MASKED = (
    *("/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list"),
    *("/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"),
)
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
NAMESPACES = ("pid", "network", "ipc", "uts", "mount", "user")
IGNORED = {
    *("name", "image", "ports", "startupProbe", "livenessProbe", "readinessProbe"),
    *("terminationGracePeriodSeconds", "enableServiceLinks", "automountServiceAccountToken", "hostUsers"),
}
"""What is for the cluster around the pod. Probes are asked by the test."""


class PodNode:
    """A folder that stands for a node: the files of images, the volumes, and the containers of one pod."""

    def __init__(self, pod: Mapping[str, Any], manifest: str, profiles: Mapping[str, str]) -> None:
        self.pod = json.loads(json.dumps(pod))
        self.manifest = manifest
        self.profiles = profiles
        self.folder = Path(tempfile.mkdtemp(prefix="fh-pod-", dir="/var/tmp"))  # a short path, open to other users
        self.folder.chmod(0o755)
        self.volume = self._make_folder("home", 0, 0o2775)
        self._containers: list[str] = []
        self._is_system = False  # whether the container that starts has the image of the computer

    @property
    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.pod["spec"]
        return spec

    @property
    def container(self) -> dict[str, Any]:
        (container,) = self.spec["containers"]
        assert isinstance(container, dict)
        return container

    @property
    def first_uid(self) -> int:
        return FIRST_UID if self.spec.get("hostUsers") is False else 0

    def prepare(self) -> None:
        """Run the containers that come before the others, each to its end."""
        known = {"hostUsers", "securityContext", "initContainers", "containers", "volumes", *IGNORED}
        assert set(self.spec) <= known, set(self.spec) - known
        for container in self.spec["initContainers"]:
            self._is_system = container["image"] == COMPUTER_IMAGE
            done = self._run(container, [*container["command"]], "run")
            assert done.returncode == 0, done.stderr
            self._is_system = False

    def start(self, name: str = "freehold") -> None:
        """The entrypoint of the image. Returns when it is started."""
        brain = describe_override()["services"]["brain"]
        log = self.folder / f"{name}.log"
        with log.open("ab") as output:
            done = self._run(self.container, [*brain["entrypoint"], *brain["command"]], "run", name, output)
        assert done.returncode == 0, log.read_text()

    def run_once(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Another program in the place of the entrypoint, to its end."""
        return self._run(self.container, [*describe_override()["services"]["brain"]["entrypoint"], *words], "run")

    def execute(self, *words: str, check: bool = True, name: str = "freehold") -> "subprocess.CompletedProcess[str]":
        """As `kubectl exec` does."""
        done = subprocess.run(
            [*self._runc(), "exec", self._name(name), *words], capture_output=True, text=True, timeout=120, check=False
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def freehold(self, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        entrypoint = describe_override()["services"]["brain"]["entrypoint"]
        return self.execute(*entrypoint, *words, check=check)

    def probe(self, kind: str) -> int:
        """As the kubelet, by the address of the pod. Returns the status, or 0 without an answer."""
        asked = self.container[kind]["httpGet"]
        (port,) = [one["containerPort"] for one in self.container["ports"] if one["name"] == asked["port"]]
        headers = {"Host": f"{POD_ADDRESS}:{port}", **{one["name"]: one["value"] for one in asked["httpHeaders"]}}
        words = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-m", "30"]
        words += [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]
        return int(self.execute(*words, f"http://127.0.0.1:{port}{asked['path']}", check=False).stdout or 0)

    def await_ready(self) -> None:
        wait_until(lambda: self.probe("readinessProbe") == 200, READY_SECONDS, pause=lambda: time.sleep(PROBE_SECONDS))

    def read_log(self, name: str = "freehold") -> str:
        return (self.folder / f"{name}.log").read_text()

    def find_pid(self, name: str = "freehold") -> int:
        done = subprocess.run([*self._runc(), "state", self._name(name)], capture_output=True, text=True, check=True)
        return int(json.loads(done.stdout)["pid"])

    def is_running(self, name: str = "freehold") -> bool:
        done = subprocess.run([*self._runc(), "state", self._name(name)], capture_output=True, text=True, check=False)
        return done.returncode == 0 and json.loads(done.stdout)["status"] == "running"

    def kill(self, name: str = "freehold") -> None:
        """As the loss of its node."""
        subprocess.run([*self._runc(), "delete", "--force", self._name(name)], capture_output=True, check=False)

    def close(self) -> None:
        for name in self._containers:
            subprocess.run([*self._runc(), "delete", "--force", name], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _runc(self) -> list[str]:
        return [RUNC, "--root", str(self.folder / "runc")]

    def _name(self, name: str) -> str:
        return f"{self.folder.name}-{name}"

    def _make_folder(self, name: str, owner: int, mode: int = 0o755) -> Path:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        os.chown(folder, self.first_uid + owner, self.first_uid + self.spec["securityContext"]["fsGroup"])
        folder.chmod(mode)
        return folder

    def _run(
        self, container: Mapping[str, Any], words: Sequence[str], verb: str, name: str | None = None, output: Any = None
    ) -> "subprocess.CompletedProcess[str]":
        bundle = Path(tempfile.mkdtemp(prefix="bundle-", dir=self.folder))
        bundle.chmod(0o755)
        self._unpack(bundle / "rootfs")
        (bundle / "config.json").write_text(json.dumps(self._describe(container, words)))
        label = self._name(name or bundle.name)
        self._containers.append(label)
        command = [*self._runc(), verb, *(["--detach"] if name else []), "--bundle", str(bundle), label]
        if output is not None:
            return subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=120, check=False, text=True
            )
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=200, check=False, text=True
        )

    def _unpack(self, root: Path) -> None:
        root.mkdir(mode=0o755)
        if self._is_system:
            _make_small_system(root)
        else:
            with tarfile.open(fileobj=io.BytesIO(pack_image(BRAIN))) as tar:
                tar.extractall(root, filter="fully_trusted")
        for path in (root, *root.rglob("*")):
            found = path.lstat()
            os.chown(path, found.st_uid + self.first_uid, found.st_gid + self.first_uid, follow_symlinks=False)
            if not path.is_symlink():
                path.chmod(found.st_mode & 0o7777)

    def _describe(self, container: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
        known = {"command", "securityContext", "env", "resources", "volumeMounts", *IGNORED}
        assert set(container) <= known, set(container) - known
        pod, own = self.spec["securityContext"], dict(container["securityContext"])
        settings = {**{name: value for name, value in pod.items() if name == "seccompProfile"}, **own}
        kinds = {"allowPrivilegeEscalation", "readOnlyRootFilesystem", "capabilities", "procMount", "seccompProfile"}
        assert set(settings) <= kinds, set(settings) - kinds
        assert settings["capabilities"] == {"drop": ["ALL"]}
        is_masked = settings.get("procMount", "Default") == "Default"
        in_namespace = self.spec.get("hostUsers") is False
        mapping = [{"containerID": 0, "hostID": FIRST_UID, "size": UIDS}]
        linux: dict[str, Any] = {
            "namespaces": [{"type": one} for one in NAMESPACES if one != "user" or in_namespace],
            **({"uidMappings": mapping, "gidMappings": mapping} if in_namespace else {}),
            "maskedPaths": list(MASKED) if is_masked else [],
            "readonlyPaths": list(READ_ONLY) if is_masked else [],
            "resources": {"memory": {"limit": parse_quantity(container["resources"]["limits"]["memory"])}},
            "cgroupsPath": f"/{self.folder.name}",
        }
        if (filters := self._find_filters(settings["seccompProfile"])) is not None:
            linux["seccomp"] = filters
        return {
            "ociVersion": "1.0.2",
            "root": {"path": "rootfs", "readonly": settings["readOnlyRootFilesystem"]},
            "process": {
                "user": {"uid": pod["runAsUser"], "gid": pod["runAsGroup"], "additionalGids": [pod["fsGroup"]]},
                "args": list(words),
                "cwd": "/" if self._is_system else BRAIN_HOME,
                "env": [f"{name}={value}" for name, value in self._list_variables(container).items()],
                "capabilities": {name: [] for name in CAPABILITY_SETS},
                "noNewPrivileges": not settings["allowPrivilegeEscalation"],
            },
            "hostname": "freehold-0",
            "mounts": [
                *KERNEL_MOUNTS,
                *self._list_volumes(container),
                *([] if self._is_system else self._list_programs()),
            ],
            "linux": linux,
        }

    def _find_filters(self, profile: Mapping[str, str]) -> dict[str, Any] | None:
        """For the default of a runtime, a profile that refuses what every such default refuses."""
        if profile["type"] == "Unconfined":
            return None
        text = (
            make_short_profile() if profile["type"] == "RuntimeDefault" else self.profiles[profile["localhostProfile"]]
        )
        found: dict[str, Any] = json.loads(text)
        return found

    def _list_variables(self, container: Mapping[str, Any]) -> dict[str, str]:
        """What the image has, then what the pod has. No secret is there."""
        brain = describe_override()["services"]["brain"]
        given = {one["name"]: one["value"].replace("$$", "$") for one in container.get("env", ()) if "value" in one}
        assert all(
            one["valueFrom"]["secretKeyRef"]["optional"] for one in container.get("env", ()) if "value" not in one
        )
        return {**brain["environment"], **given}

    def _list_programs(self) -> list[dict[str, Any]]:
        volumes = dict.fromkeys(describe_override()["services"]["brain"]["volumes"])
        return [_bind(source, target, read_only=True) for source, target, _ in (one.split(":") for one in volumes)]

    def _list_volumes(self, container: Mapping[str, Any]) -> list[dict[str, Any]]:
        sources = {one["name"]: one for one in self.spec["volumes"]}
        mounts = []
        for use in container["volumeMounts"]:
            source = sources[use["name"]]
            if source.get("emptyDir", {}).get("medium") == "Memory":
                options = ["nosuid", "nodev", f"size={source['emptyDir']['sizeLimit']}", "mode=777"]
                mounts.append({"destination": use["mountPath"], "type": "tmpfs", "source": "tmpfs", "options": options})
                continue
            folder = self._make_folder(use["name"], 0, 0o2777) if "emptyDir" in source else self._write_manifest()
            place = str(folder / use.get("subPath", ""))
            mounts.append(_bind(place, use["mountPath"], read_only=bool(use.get("readOnly"))))
            if use["mountPath"] == SYSTEM_FOLDER and not self._is_system:
                mounts.append(_bind("/usr", f"{SYSTEM_FOLDER}/usr", read_only=True))  # all programs of this machine
        return mounts

    def _write_manifest(self) -> Path:
        folder = self._make_folder("manifest", 0)
        (folder / "freehold.toml").write_text(self.manifest)
        (folder / "freehold.toml").chmod(0o644)
        return folder


KERNEL_MOUNTS: list[dict[str, Any]] = [
    {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
    {
        "destination": "/dev/pts",
        "type": "devpts",
        "source": "devpts",
        "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
    },
    {
        "destination": "/dev/shm",
        "type": "tmpfs",
        "source": "shm",
        "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"],
    },
    {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue", "options": ["nosuid", "noexec", "nodev"]},
    {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
]


def _make_small_system(root: Path) -> None:
    """An image of the computer with what its copy needs, and a file that only root reads."""
    programs = [
        Path(found).resolve()
        for name in ("sh", "find", "tar", "python3")
        if (found := shutil.which(name, path="/usr/bin"))
    ]
    shown = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=True).stdout
    libraries = {Path(word) for word in shown.split() if word.startswith("/") and not word.endswith(":")}
    for path in {*programs, *libraries}:
        place = root / "usr" / path.resolve().relative_to("/usr")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
        link = root / "usr" / Path(*path.parts[2:] if path.parts[1] == "usr" else path.parts[1:])
        if not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(os.path.relpath(place, link.parent))
    for name in ("sh", "python3"):
        if not (root / "usr/bin" / name).exists():
            (root / "usr/bin" / name).symlink_to(Path("/usr/bin", name).resolve().name)
    for name in TOP_LEVEL:
        if Path("/", name).is_symlink():
            (root / name).symlink_to(Path("/", name).readlink())
    for name in ("proc", "sys", "dev", "opt", "etc"):
        (root / name).mkdir()
    (root / "usr/bin/of-root").write_text("secret")
    (root / "usr/bin/of-root").chmod(0o600)


def _bind(source: str, target: str, *, read_only: bool) -> dict[str, Any]:
    options = ["rbind", "nosuid", "nodev", *(["ro"] if read_only else ["rw"])]
    return {"destination": target, "type": "bind", "source": source, "options": options}


def parse_quantity(text: str) -> int:
    """Of memory, as Kubernetes writes it."""
    return int(text.removesuffix("Mi")) << 20 if text.endswith("Mi") else int(text)
