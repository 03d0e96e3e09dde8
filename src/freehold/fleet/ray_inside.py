"""Ray itself: the only program that imports it. It runs in the sandbox of `ray_sandbox`, and imports nothing of ours.

`head` starts Ray's head and answers requests in lines of JSON: where there is room for a computer. `node` starts one
node, and ends with it. Ray reads its settings from the environment when it is imported.
"""

import contextlib
import importlib
import itertools
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RAY = (sys.executable, "-m", "ray.scripts.scripts")
NEEDED = (
    "RAY_AUTH_TOKEN_PATH",
    "RAY_TLS_SERVER_CERT",
    "RAY_TLS_SERVER_KEY",
    "RAY_TLS_CA_CERT",
)
START_TIMEOUT = 60.0
NODES_PAUSE = 1.0
FIRST_PAUSE, LONGEST_PAUSE = 0.002, 0.1
MACHINES_SOCKET = "/run/ray/machines.sock"
AUTOSCALER_FILE = "/run/ray/autoscaler.json"
ANSWER_TIMEOUT = 10.0
MAX_REQUEST = 65536
HEAD_KIND = "head"

Settings = dict[str, Any]


def check_environment() -> None:
    """Ray listens on all addresses of this machine: it is never started without a token and certificates."""
    for name in NEEDED:
        if not Path(os.environ.get(name, "/missing")).exists():
            sys.exit(f"Ray is not started in the open: {name} names no file")
    if os.environ.get("RAY_AUTH_MODE") != "token" or os.environ.get("RAY_USE_TLS") != "1":
        sys.exit("Ray is not started in the open: its token or its certificates are switched off")


def start_ray(settings: Settings) -> "subprocess.Popen[bytes]":
    common = [
        f"--node-ip-address={settings['address']}",
        f"--temp-dir={settings['folder']}",
        "--object-store-memory=80000000",
        "--include-log-monitor=false",
        "--disable-usage-stats",
    ]
    ports = settings["ports"]
    names = ("node-manager", "object-manager", "runtime-env-agent", "dashboard-agent-grpc", "metrics-export")
    if ports:
        common += [f"--{name}-port={ports + number}" for number, name in enumerate(names)]
        common += [f"--min-worker-port={ports + 10}", f"--max-worker-port={ports + 40}"]
    else:  # any that is free: Ray's own choice is 10002 to 19999, and it refuses to start when the head's is among them
        common += ["--min-worker-port=0", "--max-worker-port=0"]
    if "head" in settings:
        words = [f"--address={settings['head']}", f"--num-cpus={settings['cpus']}", f"--memory={settings['memory']}"]
        words += [f"--num-gpus={settings['gpus']}"]
        words += [f"--labels={','.join(f'{name}={value}' for name, value in settings['labels'].items())}"]
    else:
        words = ["--head", f"--port={settings['port']}", "--include-dashboard=false", "--num-cpus=0", "--num-gpus=0"]
        words += ["--memory=100000000"]
        if settings["machines"]:
            Path(AUTOSCALER_FILE).write_text(json.dumps(describe_machines(settings["machines"], settings["idle"])))
            words += [f"--autoscaling-config={AUTOSCALER_FILE}"]
    return subprocess.Popen(
        [*RAY, "start", "--block", *words, *common],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        stderr=sys.stderr,
        env=choose_environment(settings),
    )


def choose_environment(settings: Settings) -> dict[str, str]:
    """Ray's autoscaler knows a machine by the name of its node, and the head by the word."""
    instance = settings["instance"] if "head" in settings else [HEAD_KIND] * 2 if settings["machines"] else []
    if not instance:
        return dict(os.environ)
    return {
        **os.environ,
        "PYTHONPATH": "/run/provider",
        "RAY_enable_autoscaler_v2": "1",
        "RAY_CLOUD_INSTANCE_ID": instance[0],
        "RAY_NODE_TYPE_NAME": instance[1],
    }


def describe_machines(machines: dict[str, dict[str, Any]], idle: float) -> dict[str, Any]:
    """The configuration of Ray's autoscaler. `machines` are the kinds by name."""
    kinds: dict[str, Any] = {HEAD_KIND: {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0}}
    for name, one in machines.items():
        resources = {"CPU": one["cpus"], "memory": one["memory"], **({"GPU": one["gpus"]} if one["gpus"] else {})}
        kinds[name] = {
            "resources": resources,
            "labels": one["labels"],
            "node_config": {},
            "min_workers": one["min"],
            "max_workers": one["max"],
        }
    commands = ("initialization", "setup", "head_setup", "worker_setup", "head_start_ray", "worker_start_ray")
    return {
        "cluster_name": "freehold",
        "max_workers": sum(one["max"] for one in machines.values()),
        "upscaling_speed": 1.0,
        "idle_timeout_minutes": idle / 60,
        "provider": {
            "type": "external",
            "module": "ray_machines.RayMachines",
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
        },
        "available_node_types": kinds,
        "head_node_type": HEAD_KIND,
        "auth": {},
        "docker": {},
        "file_mounts": {},
        "cluster_synced_files": [],
        "file_mounts_sync_continuously": False,
        "rsync_exclude": [],
        "rsync_filter": [],
        **{f"{name}_commands": [] for name in commands},
    }


class MachineDoor:
    """Where the provider of Ray's autoscaler asks for machines. The head answers."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue[Any]] = {}

    def serve(self) -> None:
        """For ever."""
        Path(MACHINES_SOCKET).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.bind(MACHINES_SOCKET)
            door.listen()
            while True:
                connection, _ = door.accept()
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def take(self, number: int, answer: Any) -> None:
        if number in self._answers:
            self._answers[number].put(answer)

    def _talk(self, connection: socket.socket) -> None:
        number = next(self._numbers)
        answers = self._answers[number] = queue.SimpleQueue()
        try:
            with (
                contextlib.suppress(OSError, ValueError, RecursionError, queue.Empty),
                connection,
                connection.makefile("rwb") as stream,
            ):
                request = json.loads(stream.readline(MAX_REQUEST))
                if is_flat(request):
                    say({"asked": request, "number": number})
                    answer = answers.get(timeout=ANSWER_TIMEOUT)
                else:
                    answer = {"error": "A request is an object of texts and numbers"}
                stream.write(json.dumps(answer).encode() + b"\n")
                stream.flush()
        finally:
            del self._answers[number]


def is_flat(request: Any) -> bool:
    """What is nested deeper than the head reads would be taken for a bad Ray."""
    return isinstance(request, dict) and all(type(value) in (str, int) for value in request.values())


class Groups:
    """One placement group for each computer: a reservation without a process."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._groups: Any = importlib.import_module("ray.util.placement_group")  # ray.util has a function of that name
        self._lock = threading.Lock()
        self._made: dict[str, Any] = {}
        self._numbers: dict[str, int] = {}
        self._waiting: dict[str, list[float]] = {}

    def place(self, request: dict[str, Any]) -> None:
        bundle = {"CPU": request["cpus"], "memory": request["memory"]}
        if request["gpus"]:
            bundle["GPU"] = request["gpus"]
        selector = dict(request["labels"])
        if request["not_on"]:
            selector["freehold-node"] = f"!in({','.join(request['not_on'])})"
        if request["on"]:
            selector["freehold-node"] = request["on"]
        group = self._groups.placement_group([bundle], request["strategy"], bundle_label_selector=[selector])
        with self._lock:
            self._made[request["id"]] = group
            self._numbers[request["id"]] = request["number"]
            self._waiting[request["id"]] = [time.monotonic(), time.monotonic()]

    def release(self, id: str) -> None:
        with self._lock:
            group = self._made.pop(id, None)
            self._waiting.pop(id, None)
            self._numbers.pop(id, None)
        if group is not None:
            self._groups.remove_placement_group(group)

    def watch(self) -> None:
        """For ever: says where there is room as soon as there is."""
        names: dict[str, str] = {}
        while True:
            with self._lock:
                due = [id for id, (_, at) in self._waiting.items() if at <= time.monotonic()]
            for id in due:
                group = self._made.get(id)
                found = self._groups.placement_group_table(group) if group is not None else {}
                if found.get("state") == "CREATED":
                    node = found["bundles_to_node_id"][0]
                    if node not in names:
                        names = self._name_nodes()
                    with self._lock:
                        if self._made.get(id) is not group or self._waiting.pop(id, None) is None:
                            continue
                        number = self._numbers[id]
                    say({"placed": id, "number": number, "node": names.get(node, "")})
                else:
                    self._postpone(id)
            time.sleep(FIRST_PAUSE)

    def _postpone(self, id: str) -> None:
        with self._lock:
            if id in self._waiting:
                since, _ = self._waiting[id]
                age = time.monotonic() - since
                self._waiting[id][1] = time.monotonic() + min(LONGEST_PAUSE, max(FIRST_PAUSE, age / 10))

    def _name_nodes(self) -> dict[str, str]:
        return {node["NodeID"]: node["Labels"].get("freehold-node", "") for node in self._ray.nodes()}

    def report_nodes(self) -> None:
        """For ever: what each node has and what of it is free."""
        state: Any = importlib.import_module("ray._private.state")
        while True:
            free = state.available_resources_per_node()
            rows = []
            for node in self._ray.nodes():
                name = node["Labels"].get("freehold-node", "")
                if node["Alive"] and name:
                    has, left = node["Resources"], free.get(node["NodeID"], {})
                    kinds = ("CPU", "memory"), ("GPU",)
                    amounts = [one.get(kind, 0) for some in kinds for one in (has, left) for kind in some]
                    rows.append([name, *amounts])
            say({"nodes": rows})
            time.sleep(NODES_PAUSE)


_speech = threading.Lock()
_answers = sys.stdout


def say(message: dict[str, Any]) -> None:
    with _speech:
        _answers.write(json.dumps(message) + "\n")
        _answers.flush()


def run_guarded(work: Callable[[], object]) -> None:
    """A thread that fails ends the program: whoever started it starts it again."""

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            sys.stderr.flush()
            os._exit(1)

    threading.Thread(target=guarded, daemon=True).start()


def run_head(settings: Settings) -> None:
    process = start_ray(settings)
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        with contextlib.suppress(OSError), socket.create_connection((settings["address"], settings["port"]), 1):
            break
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit("Ray's head did not start")
        time.sleep(0.05)
    ray: Any = importlib.import_module("ray")
    while True:
        try:
            ray.init(
                address=f"{settings['address']}:{settings['port']}",
                _node_ip_address=settings["address"],
                _temp_dir=settings["folder"],
                log_to_driver=False,
                logging_level="ERROR",
            )
            break
        except Exception as error:
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"Ray's head cannot be used: {error}")
            time.sleep(0.2)
    groups, machines = Groups(ray), MachineDoor()
    say({"ready": True})
    if settings["machines"]:
        run_guarded(machines.serve)
    run_guarded(groups.watch)
    run_guarded(groups.report_nodes)
    run_guarded(lambda: sys.exit(f"Ray's head ended with {process.wait()}"))
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "place":
            groups.place(request)
        elif request["do"] == "answer":
            machines.take(request["number"], request["answer"])
        else:
            groups.release(request["id"])
    os._exit(0)


def run_node(settings: Settings) -> None:
    """Until Ray ends, or whoever started this does."""
    process = start_ray(settings)
    run_guarded(lambda: (sys.stdin.read(), os._exit(0)))
    sys.exit(process.wait())


def keep_answers_apart() -> None:
    """Ray prints warnings to standard output, when a node is lost for example. They go to the log."""
    global _answers
    _answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)


def main() -> None:
    check_environment()
    keep_answers_apart()
    settings = json.loads(sys.stdin.readline())
    if "head" in settings:
        run_node(settings)
    else:
        run_head(settings)


if __name__ == "__main__":
    main()
