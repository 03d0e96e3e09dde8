"""One script over many inputs, each in a computer of its own. Called again with the same folder, it goes on."""

import asyncio
import tempfile
from pathlib import Path

from freehold import Computer

SCRIPT = "import sys; print(sum(map(int, open(sys.argv[1]))))"


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "add.py").write_text(SCRIPT)
        inputs = [folder / f"{number}.txt" for number in range(1, 5)]
        for number, path in enumerate(inputs, 1):
            path.write_text("\n".join(map(str, range(number * 10))))
        summary = await Computer.map(folder / "add.py", inputs, into=folder / "sums", parallel=2)
        for task in summary.tasks:
            print(Path(task.name).name, (folder / "sums" / str(task.folder) / "stdout").read_text(), end="")


asyncio.run(main())
