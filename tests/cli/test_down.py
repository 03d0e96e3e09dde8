"""`freehold down --now` gives nobody time, and the files are as safe as after a slow stop."""

from pathlib import Path

from tests.keeper.running import Stead

from freehold.timeline import Timeline


def test_down_now_ends_everything_and_the_timeline_verifies(tmp_path: Path) -> None:
    stead = Stead(tmp_path)
    with stead.keeper() as keeper:
        keeper.next("ready")
        done = stead.run("down", "--now")
        assert (done.returncode, done.stdout) == (0, "Stopped.\n"), done.stderr
        assert keeper.process.wait() == 0
    with Timeline(stead.home.timeline, readonly=True) as timeline:
        assert timeline.verify() == []
        assert timeline.read()[-1].kind == "keeper.stopped"
