"""The Python code in the guide is run, and its output is compared with the guide."""

import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "history.md"


def test_the_guide_prints_what_it_shows() -> None:
    blocks = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert blocks
    for code, printed in blocks:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_every_verb_in_the_guide_exists() -> None:
    verbs = set(re.findall(r"freehold ([a-z]+)", GUIDE.read_text())) - {"freehold"}
    known = {path.stem for path in (Path(__file__).parents[2] / "src" / "freehold" / "cli").glob("[a-z]*.py")}
    assert verbs <= known
