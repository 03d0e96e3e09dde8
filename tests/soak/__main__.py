"""`python -m tests.soak`: four sessions work while processes die, stop, the clock jumps and the disk fills. Also `make soak`."""

import argparse
import asyncio
import os
import secrets
import shutil
import sys
import time

from tests.soak.soak import Soak
from tests.soak.stand import make_folder

OWN_NAMESPACE = "SOAK_OWN_NAMESPACE"


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="how long (20); at least one fault of each kind")
    parser.add_argument("--seed", type=int, help="the seed (a random one, which is printed)")
    parser.add_argument("--keep", metavar="FOLDER", help="copy the home there at the end")
    return parser.parse_args(words)


def enter_namespace(words: list[str]) -> None:
    """Start again where a mount is seen by nobody else and vanishes with the run."""
    if os.geteuid() == 0 and OWN_NAMESPACE not in os.environ:
        os.environ[OWN_NAMESPACE] = "1"
        argv = ["unshare", "--mount", "--propagation", "private", sys.executable, "-m", "tests.soak", *words]
        os.execvp("unshare", argv)


def main(words: list[str]) -> int:
    arguments = parse_arguments(words)
    enter_namespace(words)
    seed = secrets.randbelow(2**31) if arguments.seed is None else arguments.seed
    own_disk = OWN_NAMESPACE in os.environ
    print(f"seed {seed}, {arguments.minutes:g} minutes" + ("" if own_disk else "; a full disk needs root"), flush=True)
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begun:7.1f} s  {text}", flush=True)

    with make_folder(own_disk=own_disk) as folder:
        soak = Soak(folder, seed, own_disk=own_disk, say=say)
        try:
            asyncio.run(soak.run(arguments.minutes * 60))
        finally:
            if arguments.keep:
                shutil.copytree(folder / "disk", arguments.keep, symlinks=True, dirs_exist_ok=True)
    for name, count in sorted(soak.record.counts.items()):
        print(f"{count:>8} {name}")
    for name, count in sorted(soak.client.replies.items()):
        print(f"{count:>8} {name}")
    for name, seconds in sorted(soak.slowest_recovery.items()):
        print(f"{soak.struck[name]:>8} × {name}, ready again within {seconds:.1f} s")
    for finding in soak.record.findings:
        print(f"WRONG: {finding}")
    print(f"seed {seed}: {len(soak.record.findings) or 'nothing'} wrong")
    return 1 if soak.record.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
