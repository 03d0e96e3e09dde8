"""Reads the manifest in another process, which prints the plan and ends."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from freehold.errors import FreeholdError
from freehold.features import FeatureProgram, list_features, load_reference
from freehold.home import Home, find_home
from freehold.images.artifacts import BUILT, ImageFolder
from freehold.keeper.agent_state import IGNORED_PATTERNS, list_memory_patterns
from freehold.keeper.calls import ExceptionStatus, ManifestAdvice
from freehold.keeper.plan import KeeperPlan, MountPlan, NeededFilePlan, ServicePlan
from freehold.strict_json import decode

if TYPE_CHECKING:
    from freehold.manifest import LoadedManifest, Manifest

READ_TIMEOUT = 20.0


class PlanReader:
    """The process starts at once, so that the keeper can do other work until it calls `read_plan`."""

    def __init__(self, home: Home) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "freehold.keeper.plan_reader", "--home", str(home.root)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYDANTIC_DISABLE_PLUGINS": "__all__"},  # looking for plugins takes time
        )

    async def read_plan(self) -> KeeperPlan:
        """The plan; raises FreeholdError when the manifest cannot be used."""
        import asyncio

        try:
            out, err = await asyncio.to_thread(self._process.communicate, timeout=READ_TIMEOUT)
        except subprocess.TimeoutExpired:
            raise FreeholdError("manifest.slow", f"The manifest could not be read within {READ_TIMEOUT:g} s") from None
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


def _decode(out: bytes, err: bytes) -> KeeperPlan:
    try:
        body: dict[str, Any] = json.loads(out)
    except ValueError:
        lines = err.decode(errors="replace").strip().splitlines()
        raise FreeholdError(
            "manifest.unreadable",
            f"Reading the manifest failed: {lines[-1] if lines else 'no reason given'}",
            hint="freehold check shows every problem of the manifest",
        ) from None
    if "error" in body:
        error = body["error"]
        raise FreeholdError(error["code"], error["message"], hint=error["hint"])
    return decode(KeeperPlan, body["plan"])


def make_plan(loaded: "LoadedManifest") -> KeeperPlan:
    from datetime import UTC, datetime  # these not in the keeper, which imports this module too

    from freehold.fleet.section import FleetSection
    from freehold.gpu.section import GpuSection
    from freehold.manifest.exceptions import list_in_force
    from freehold.skills.section import SkillsSection

    manifest = loaded.manifest
    exceptions = list_in_force(manifest, datetime.now(UTC).date())
    computer = manifest.computer
    home = find_home(loaded.path.parent)
    return KeeperPlan(
        checksum=loaded.checksum,
        owner=manifest.owner.did,
        gateway_host=manifest.gateway.host,
        gateway_port=manifest.gateway.port,
        public_url=manifest.gateway.public_url,
        sign_in_idle=manifest.gateway.sign_in_idle,
        sign_in_absolute=manifest.gateway.sign_in_absolute,
        keeper_host=manifest.keeper.host,
        keeper_port=manifest.keeper.port,
        metrics_host=manifest.observe.metrics_host,
        metrics_port=manifest.observe.metrics_port,
        otlp_endpoint=manifest.observe.otlp_endpoint,
        programs=tuple(_plan_programs(manifest)),
        backend=computer.backend,
        engine_host=computer.host,
        runs_in_fleet=manifest.section(FleetSection).runs,
        image=ImageFolder(home.images, home.image_lock).resolve(computer.image, computer.backend),
        image_is_built=computer.image == BUILT,
        shows_skills=manifest.section(SkillsSection).enabled,
        sleep_after=computer.sleep_after,
        limits=computer.limits.model_dump(),
        mounts=tuple(
            MountPlan(one.kind, one.source, one.target, one.writable, one.commit or "", one.size or 0)
            for one in computer.mounts
        ),
        services=tuple(
            ServicePlan(name, tuple(one.command), one.port, one.folder, one.restart_on_undo, one.always)
            for name, one in computer.services.items()
        ),
        history_folders=(*manifest.history.folders, *(("pods",) if manifest.slots.pods.mode == "local" else ())),
        history_ignore=(*IGNORED_PATTERNS, *list_memory_patterns(manifest), *manifest.history.ignore),
        history_quota=manifest.history.quota,
        history_rate=manifest.history.rate,
        history_quiet=manifest.history.quiet,
        advice=tuple(
            ManifestAdvice(one.code, one.message, one.hint) for one in loaded.problems if one.severity == "warning"
        ),
        exceptions=tuple(
            ExceptionStatus(one.name, one.reason, str(one.until) if one.until else None, one.why, one.adds)
            for one in exceptions
        ),
        devices=manifest.section(GpuSection).list_devices(),
        needed_files=tuple(
            NeededFilePlan(file.path, one.name, file.command, file.in_main, file.is_library)
            for one in exceptions
            for file in one.needs
        ),
    )


def _plan_programs(manifest: "Manifest") -> Iterator[FeatureProgram]:
    for feature in list_features():
        program = load_reference(feature.program)(manifest) if feature.program is not None else None
        if program is not None:
            yield program


def main() -> None:
    import argparse  # not in the keeper, which imports this module too

    parser = argparse.ArgumentParser(prog="python -m freehold.keeper.plan_reader")
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
