"""Files what arrives in a folder. As a routine: files = ["inbox/*"]."""

from pathlib import Path

from freehold_workflow import agent, gather, step


def list_present(paths):
    """Those that were not deleted or moved away meanwhile."""
    return [path for path in paths if Path("/workspace", path).is_file()]


def move(path, answer):
    folder = Path("/workspace/archive") / ("".join(filter(str.isalnum, answer.lower()))[:30] or "other")
    folder.mkdir(parents=True, exist_ok=True)
    return str(Path("/workspace", path).rename(folder / Path(path).name))


async def main(data):
    paths = await step(list_present, data["paths"])
    words = [agent("In one word: what is this file about?", data=path) for path in paths]
    found = zip(paths, await gather(*words), strict=True)
    return await gather(*(step(move, path, word) for path, word in found)) or None
