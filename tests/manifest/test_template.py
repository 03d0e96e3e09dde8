"""The manifest that init writes."""

import re
import tomllib

from tests.manifest.machine import look

from freehold.manifest import Manifest
from freehold.manifest.shape import list_keys
from freehold.manifest.template import starter_manifest

DID = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"


def test_it_passes_its_own_check_and_changes_nothing() -> None:
    loaded = look(starter_manifest({}))
    assert loaded.problems == ()
    assert loaded.manifest == Manifest()


def test_it_names_its_owner() -> None:
    loaded = look(starter_manifest({("owner", "did"): DID, ("owner", "handle"): "alice.bsky.social"}))
    assert loaded.problems == ()
    assert (loaded.manifest.owner.did, loaded.manifest.owner.handle) == (DID, "alice.bsky.social")


def test_every_line_can_be_uncommented() -> None:
    text = re.sub(r"^# (?=\[|\w+ = )", "", starter_manifest({}), flags=re.MULTILINE)
    assert not {"E003", "E005", "E006"} & {problem.code for problem in look(text).problems}
    tree = tomllib.loads(text)
    missing = []
    for path, _ in list_keys():
        if path[0] == "slots":
            continue
        at: object = tree
        for part in path:
            if isinstance(at, list):
                at = at[0]
            elif isinstance(at, dict):
                at = next(iter(v for v in at.values() if isinstance(v, dict))) if part == "<name>" else at.get(part)
        if at is None:
            missing.append(path)
    assert not missing
    assert set(tree["slots"]) == {"beads", "pods", "memory", "events", "orchestrator"}
