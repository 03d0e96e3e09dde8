"""Reading the manifest in a process of its own, which ends when it has printed the plan."""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from freehold.errors import FreeholdError
from freehold.home import Home, find_home
from freehold.keeper.agent_state import IGNORED
from freehold.keeper.plan import Advice, MountPlan, Plan, ServicePlan, plan_from_json

if TYPE_CHECKING:
    from freehold.manifest import Loaded

PATIENCE = 20.0


class Reading:
    """Started when made, so that the keeper can do other things until it asks for the `plan`."""

    def __init__(self, home: Home) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "freehold.keeper.reading", "--home", str(home.root)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    async def plan(self) -> Plan:
        """The plan; raises what is wrong with the manifest."""
        import asyncio

        try:
            out, err = await asyncio.to_thread(self._process.communicate, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise FreeholdError("manifest.slow", f"The manifest could not be read within {PATIENCE:g} s") from None
        finally:
            self.close()
        return _decode(out, err)

    def close(self) -> None:
        """Idempotent."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()


def _decode(out: bytes, err: bytes) -> Plan:
    try:
        body: dict[str, Any] = json.loads(out)
    except ValueError:
        said = err.decode(errors="replace").strip().splitlines()
        raise FreeholdError(
            "manifest.unreadable",
            f"Reading the manifest failed: {said[-1] if said else 'no reason given'}",
            hint="freehold check shows every problem of the manifest",
        ) from None
    if "error" in body:
        error = body["error"]
        raise FreeholdError(error["code"], error["message"], hint=error["hint"])
    return plan_from_json(body["plan"])


def make_plan(loaded: "Loaded") -> Plan:
    manifest = loaded.manifest
    computer = manifest.computer
    return Plan(
        checksum=loaded.checksum,
        owner=manifest.owner.did,
        gateway_host=manifest.gateway.host,
        gateway_port=manifest.gateway.port,
        public_url=manifest.gateway.public_url,
        session_idle=manifest.gateway.session_idle,
        session_absolute=manifest.gateway.session_absolute,
        keeper_host=manifest.keeper.host,
        keeper_port=manifest.keeper.port,
        metrics_host=manifest.observe.metrics_host,
        metrics_port=manifest.observe.metrics_port,
        otlp_endpoint=manifest.observe.otlp_endpoint,
        ssh_host=manifest.ssh.host,
        ssh_port=manifest.ssh.port if manifest.ssh.enabled else None,
        backend=computer.backend,
        image=computer.image,
        limits=computer.limits.model_dump(),
        mounts=tuple(MountPlan(one.source, one.target, one.writable) for one in computer.mounts),
        services=tuple(
            ServicePlan(name, tuple(one.command), one.port, one.folder, one.restart_on_undo)
            for name, one in computer.services.items()
        ),
        history_folders=tuple(manifest.history.folders),
        history_ignore=(*IGNORED, *manifest.history.ignore),
        history_quota=manifest.history.quota,
        history_quiet=manifest.history.quiet,
        advice=tuple(Advice(one.code, one.message, one.hint) for one in loaded.problems if one.severity == "warning"),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m freehold.keeper.reading")
    parser.add_argument("--home", required=True)
    home = find_home(parser.parse_args().home)
    from freehold.manifest import require_manifest

    try:
        answer = {"plan": asdict(make_plan(require_manifest(home.manifest, os.environ)))}
    except FreeholdError as error:
        answer = {"error": dict(error.body())}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
