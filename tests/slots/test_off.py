"""A slot that is off costs nothing: none of its code is loaded."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """\
import json, sys
from pathlib import Path
from freehold.home import Home
from freehold.manifest.model import Manifest
from freehold.slots.host import SlotHost, make_place
from freehold.timeline import Timeline
with Timeline(Path(sys.argv[1]) / "timeline.db") as timeline:
    host = SlotHost(Manifest(), make_place(Home(Path(sys.argv[1]), Path(sys.argv[1])), timeline, lambda name: None))
    assert {slot.implementation for slot in host.list()} == {"off"}
print(json.dumps(sorted(name for name in sys.modules if name.startswith(("freehold.slots.", "psycopg", "numpy")))))
"""


def test_a_slot_that_is_off_loads_neither_its_implementation_nor_a_database_client(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert not [
        name for name in loaded if name.startswith(("psycopg", "numpy")) or name.endswith((".local", ".external"))
    ]
    assert not [name for name in loaded if name.endswith(".contract") and name != "freehold.slots.contract"]
    assert "freehold.slots.postgres" not in loaded
    assert "freehold.slots.beads.changes" not in loaded
    assert "freehold.slots.privacy.filter" not in loaded
