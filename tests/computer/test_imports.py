import subprocess
import sys


def loaded_by(script: str) -> set[str]:
    """The modules that a fresh Python has loaded after the script."""
    program = f"import sys; {script}; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_library_imports_nothing_outside_the_standard_library() -> None:
    """The keeper and the command line load it; starting a computer may load more."""
    loaded = loaded_by("import freehold.computer")
    foreign = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"freehold", "__main__"}
    assert not {name for name in foreign if not name.startswith(("_", "sitecustomize"))}
    assert "multiprocessing" not in loaded


def test_connecting_to_a_computer_loads_no_backend() -> None:
    loaded = loaded_by("from freehold.computer import Computer; Computer.connect('/nowhere')")
    assert not {name for name in loaded if name.startswith("freehold.computer.bubblewrap")}


def test_starting_a_computer_loads_the_backend_of_that_name_only() -> None:
    loaded = loaded_by("from freehold.computer.registry import find_backend; find_backend('bubblewrap')")
    assert "freehold.computer.bubblewrap.backend" in loaded
    assert not {name for name in loaded if name.startswith("freehold.computer.escapes")}
