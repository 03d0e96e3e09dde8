"""`freehold down --now` does not wait, and the files are as safe as after a normal stop."""

from pathlib import Path

from tests.support.freehold import FreeholdHarness

from freehold.timeline import Timeline


def test_down_now_ends_everything_and_the_timeline_verifies(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    with harness.keeper() as keeper:
        keeper.next("ready")
        done = harness.run("down", "--now")
        assert (done.returncode, done.stdout) == (0, "Stopped.\n"), done.stderr
        assert keeper.process.wait() == 0
    with Timeline(harness.home.timeline, readonly=True) as timeline:
        assert timeline.verify() == []
        assert timeline.read()[-1].kind == "keeper.stopped"
