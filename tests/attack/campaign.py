"""Runs rounds of all targets in turn for a given time, and records how far it came."""

import asyncio
import json
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.attack.target import AttackTarget, RunRound

ROUND_TIMEOUT = 120.0
"""Seconds. A round that takes longer counts as a failure: what is attacked has stopped answering."""

TURN_SECONDS = 45.0
"""How long one target runs before the next one has its turn."""


@dataclass
class TargetProgress:
    """What was done to one target."""

    next_round: int = 0
    tried: int = 0
    failures: list[int] = field(default_factory=list)
    """The rounds that failed."""


@dataclass
class CampaignState:
    """All that is needed to go on after an interruption."""

    seed: int
    elapsed: float = 0.0
    targets: dict[str, TargetProgress] = field(default_factory=dict)

    def save(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self), indent=1))
        draft.replace(file)

    @classmethod
    def load(cls, file: Path) -> "CampaignState":
        stored = json.loads(file.read_text())
        targets = {name: TargetProgress(**progress) for name, progress in stored["targets"].items()}
        return cls(stored["seed"], stored["elapsed"], targets)

    @property
    def failed(self) -> bool:
        return any(progress.failures for progress in self.targets.values())


class Campaign:
    """Attacks each target in turn until the time is over. A failure is printed and the campaign goes on."""

    def __init__(
        self, targets: Sequence[AttackTarget], state: CampaignState, file: Path, report: Callable[[str], None]
    ) -> None:
        self._targets = targets
        self._state = state
        self._file = file
        self._report = report

    async def run(self, seconds: float) -> None:
        turn = min(TURN_SECONDS, seconds / len(self._targets))
        while self._state.elapsed < seconds:
            for target in self._targets:
                await self._attack(target, min(turn, seconds - self._state.elapsed))
                if self._state.elapsed >= seconds:
                    break

    async def repeat_round(self, target: AttackTarget, round_number: int) -> bool:
        """Runs one round alone. True when nothing got through."""
        folder = Path(tempfile.mkdtemp(prefix="attack-"))
        try:
            async with target.open(folder) as run_round:
                return await self._run_round(target, round_number, run_round) is not None
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def _attack(self, target: AttackTarget, seconds: float) -> None:
        progress = self._state.targets.setdefault(target.name, TargetProgress())
        folder = Path(tempfile.mkdtemp(prefix="attack-"))
        begun = time.monotonic()
        try:
            async with target.open(folder) as run_round:
                while True:
                    number, progress.next_round = progress.next_round, progress.next_round + 1
                    tried = await self._run_round(target, number, run_round)
                    if tried is None:
                        progress.failures.append(number)
                        break
                    progress.tried += tried
                    if time.monotonic() - begun >= seconds:
                        break
        except Exception:
            # The target itself broke, for example because what it attacked is no longer there.
            progress.failures.append(max(0, progress.next_round - 1))
            self._report_failure(target, max(0, progress.next_round - 1))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._state.elapsed += time.monotonic() - begun
            self._state.save(self._file)
        self._report(f"{target.name}: {progress.tried} tried in {progress.next_round} rounds")

    async def _run_round(self, target: AttackTarget, number: int, run_round: RunRound) -> int | None:
        try:
            async with asyncio.timeout(ROUND_TIMEOUT):
                return await run_round(target.random_for(self._state.seed, number))
        except Exception:
            self._report_failure(target, number)
            return None

    def _report_failure(self, target: AttackTarget, number: int) -> None:
        self._report(
            f"FAILED {target.name}, seed {self._state.seed}, round {number}. Repeat it with:\n"
            f"  python -m tests.attack --only {target.name} --seed {self._state.seed} --round {number}\n"
            f"{traceback.format_exc()}"
        )
