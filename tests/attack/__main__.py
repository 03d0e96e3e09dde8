"""`python -m tests.attack`: races and fuzzes for a given time. Also as `make attack`."""

import argparse
import asyncio
import secrets
import sys
from pathlib import Path

from tests.attack.campaign import Campaign, CampaignState
from tests.attack.target import list_target_names, load_target

STATE_FILE = Path(".cache/attack.json")


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (30)")
    parser.add_argument("--seed", type=int, help="the seed (a random one, which is printed)")
    parser.add_argument("--only", action="append", choices=list_target_names(), help="a target; may be repeated")
    parser.add_argument("--round", type=int, help="repeat this one round of the target given with --only")
    parser.add_argument("--resume", action="store_true", help="go on with the interrupted run")
    parser.add_argument("--state", type=Path, default=STATE_FILE, help=f"where progress is kept ({STATE_FILE})")
    arguments = parser.parse_args(words)
    if arguments.round is not None and (arguments.seed is None or not arguments.only or len(arguments.only) != 1):
        parser.error("--round needs --seed and one --only")
    if arguments.resume and arguments.seed is not None:
        parser.error("--resume uses the seed of the interrupted run; leave out --seed")
    if arguments.resume and not arguments.state.exists():
        parser.error(f"there is no interrupted run in {arguments.state}")
    return arguments


def main(words: list[str]) -> int:
    arguments = parse_arguments(words)
    seed = secrets.randbelow(2**31) if arguments.seed is None else arguments.seed
    state = CampaignState.load(arguments.state) if arguments.resume else CampaignState(seed)
    targets = [load_target(name) for name in arguments.only or list_target_names()]
    campaign = Campaign(targets, state, arguments.state, lambda line: print(line, flush=True))
    print(f"seed {state.seed}, {len(targets)} targets", flush=True)
    if arguments.round is not None:
        return 0 if asyncio.run(campaign.repeat_round(targets[0], arguments.round)) else 1
    try:
        asyncio.run(campaign.run(arguments.minutes * 60))
    except KeyboardInterrupt:
        print("Interrupted. Go on with: python -m tests.attack --resume", flush=True)
        return 130
    for name, progress in sorted(state.targets.items()):
        failed = f", failed rounds: {progress.failures}" if progress.failures else ""
        print(f"{name:20} {progress.tried:>10} tried in {progress.next_round} rounds{failed}", flush=True)
    return 1 if state.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
