import subprocess
import sys


def test_the_library_imports_nothing_outside_the_standard_library() -> None:
    """The keeper holds it; starting a computer may load more, knowing about one does not."""
    script = "import sys; import freehold.computer; print('\\n'.join({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    foreign = set(done.stdout.split()) - set(sys.stdlib_module_names) - {"freehold", "__main__"}
    assert not {name for name in foreign if not name.startswith(("_", "sitecustomize"))}
    assert "multiprocessing" not in done.stdout
