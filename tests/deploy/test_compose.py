"""The files for docker compose: what they are for known manifests, and what changes with the manifest."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.support.quadlet import find_command, read_units

from freehold.deploy import deployment as deployments
from freehold.deploy.caddyfile import write_caddyfile
from freehold.deploy.cli import command
from freehold.deploy.compose import write_compose
from freehold.deploy.deployment import COMPUTER_COMMAND, Deployment, ImageNames, read_deployment
from freehold.deploy.environment_file import write_environment
from freehold.deploy.quadlet import write_quadlet
from freehold.deploy.yaml_text import YamlValue, write_yaml
from freehold.errors import FreeholdError
from freehold.home import find_home

GOLDEN = Path(__file__).parent / "golden"
PUBLIC = """
[owner]
did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
[gateway]
public_url = "https://agent.example.com"
"""
IMAGES = ImageNames("registry.example.com/freehold-brain:1", "registry.example.com/freehold:1")
ReadDeployment = Callable[[str], Deployment]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReadDeployment:
    """The deployment of a manifest, without what changes with each version."""
    monkeypatch.setattr(deployments, "__version__", "1.0.0")
    monkeypatch.delenv("OWNER_DID", raising=False)

    def read(manifest: str) -> Deployment:
        (tmp_path / "freehold.toml").write_text(manifest)
        return replace(read_deployment(find_home(tmp_path), IMAGES), checksum="0" * 64)

    return read


def check_golden(name: str, text: str) -> None:
    """A difference is shown by pytest. If it is meant, write the file again from what the test saw."""
    assert text == (GOLDEN / name).read_text()


def test_the_compose_file_of_a_plain_manifest(read: ReadDeployment) -> None:
    check_golden("compose.yaml", write_compose(read(PUBLIC)))


def test_the_compose_file_with_caddy_mounts_and_exceptions(read: ReadDeployment, tmp_path: Path) -> None:
    """Each exception of the manifest is exactly one line: a port, a folder, a limit."""
    folder = Path("/usr/share/doc")
    manifest = f"""{PUBLIC}
        trusted_proxies = ["10.1.2.3"]
        [deploy]
        caddy = true
        email = "owner@example.com"
        [observe]
        metrics_host = "0.0.0.0"
        [security.exceptions.public-metrics]
        reason = "the scraper is on the same network"
        [computer.limits]
        memory = "1GiB"
        tmp = "100MiB"
        cpus = 0.5
        [[computer.mounts]]
        source = "{folder}"
        target = "/mnt/doc"
        [[computer.mounts]]
        kind = "memory"
        target = "/mnt/fast"
        size = "10MiB"
        [models.other]
        kind = "openai"
        base_url = "https://models.example.com/v1"
        key = "env:OTHER_KEY"
    """
    check_golden("compose-caddy.yaml", write_compose(read(manifest)))


def test_the_units_for_podman(read: ReadDeployment) -> None:
    """The same walls and limits, one file for each container and volume."""
    for name, text in write_quadlet(read(PUBLIC), Path("/etc/containers/systemd/freehold")).items():
        check_golden(name, text)


def test_the_units_for_podman_are_read_as_they_are_meant(read: ReadDeployment) -> None:
    """Line by line, as systemd reads a unit: the program of the computer comes back word for word."""
    text = write_quadlet(read(PUBLIC), Path("/srv/freehold"))["freehold-computer.container"]
    (exec_line,) = [line for line in text.splitlines() if line.startswith("Exec=")]
    assert tuple(shlex.split(exec_line.removeprefix("Exec="))) == COMPUTER_COMMAND
    for folder in ("/srv/a b", "/srv/%h", "/srv/a:b"):
        with pytest.raises(FreeholdError) as caught:
            write_quadlet(read(PUBLIC), Path(folder))
        assert caught.value.code == "deploy.odd-path"


def test_the_generator_of_podman_takes_the_units() -> None:
    """And makes commands that have every wall. tests/deploy/test_quadlet_running.py starts them."""
    line = " ".join(find_command(read_units(GOLDEN)["freehold-computer"]))
    for wall in (
        "--network none",
        "--cap-drop all",
        "--read-only ",
        "no-new-privileges",
        "seccomp=",
        "--user 64242:64242",
    ):
        assert wall in line


def test_the_caddyfile_and_the_variables(read: ReadDeployment) -> None:
    found = read(PUBLIC + 'preview_url = "https://preview.example.net"\n[deploy]\nemail = "owner@example.com"\n')
    check_golden("Caddyfile", write_caddyfile(found, "127.0.0.1:3000"))
    check_golden("freehold.env", write_environment(found))


@pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed")
def test_caddy_accepts_its_file() -> None:
    words = ["caddy", "validate", "--adapter", "caddyfile", "--config", str(GOLDEN / "Caddyfile")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is not installed")
@pytest.mark.parametrize("name", ["compose.yaml", "compose-caddy.yaml"])
def test_docker_compose_accepts_the_files(name: str, tmp_path: Path) -> None:
    shutil.copyfile(GOLDEN / name, tmp_path / "compose.yaml")
    (tmp_path / "computer-seccomp.json").write_text("{}")
    done = subprocess.run(["docker-compose", "config", "-q"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def deploy(home: Path, *words: str) -> Result:
    images = ["--brain-image", "brain:1", "--computer-image", "computer:1"]
    return CliRunner().invoke(command, ["compose", str(home / "out"), "--home", str(home), *images, *words])


def test_a_check_tells_when_the_files_have_drifted(tmp_path: Path) -> None:
    (tmp_path / "freehold.toml").write_text(PUBLIC)
    assert deploy(tmp_path).exit_code == 0
    assert deploy(tmp_path, "--check").exit_code == 0
    (tmp_path / "freehold.toml").write_text(PUBLIC + '[computer.limits]\nmemory = "1GiB"\n')
    caught = deploy(tmp_path, "--check").exception
    assert isinstance(caught, FreeholdError)
    assert caught.code == "deploy.drifted"
    assert "+    mem_limit: 1073741824" in caught.message
    assert deploy(tmp_path).exit_code == 0
    compose = tmp_path / "out/compose.yaml"
    compose.write_text(compose.read_text().replace("    network_mode: none\n", ""))
    caught = deploy(tmp_path, "--check").exception
    assert isinstance(caught, FreeholdError)
    assert "+    network_mode: none" in caught.message
    assert caught.hint == f"Write it again: freehold deploy compose {tmp_path / 'out'}"


def test_a_folder_of_backups_is_a_volume_of_freehold_and_not_of_the_computer(
    read: ReadDeployment, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """And whoever deploys is told to let its user write there."""
    folder = tmp_path_factory.mktemp("elsewhere") / "backups"
    found = read(PUBLIC + f'[backup]\nto = "{folder}"\n')
    assert write_compose(found).count(f"{folder}:{folder}") == 1
    assert str(folder) in [one.source for one in found.brain_volumes]
    assert str(folder) not in [one.source for one in found.computer_volumes]
    told = f"mkdir -p {folder} && chown 64242 {folder}"
    assert told in deploy(tmp_path).stdout
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, 64242, -1)
        assert told not in deploy(tmp_path).stdout
    elsewhere = read(PUBLIC + '[backup]\nto = "s3://bucket/freehold"\nuser = "x"\nkey = "secret:backup"\n')
    assert not elsewhere.foreign_folders


def test_a_file_without_an_owner_or_an_image_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OWNER_DID", raising=False)
    (tmp_path / "freehold.toml").write_text("")
    caught = deploy(tmp_path).exception
    assert isinstance(caught, FreeholdError)
    assert "owner.did is not set" in caught.message
    assert not (tmp_path / "out").exists()
    (tmp_path / "freehold.toml").write_text(PUBLIC)
    for wanted in ("freehold build --brain", "freehold build,"):
        named = [] if "--brain" in wanted else ["--brain-image", "brain:1"]
        done = CliRunner().invoke(command, ["compose", str(tmp_path / "out"), "--home", str(tmp_path), *named])
        assert isinstance(done.exception, FreeholdError)
        assert done.exception.code == "deploy.not-built"
        assert wanted in done.exception.hint


def test_the_old_names_of_variables_work(read: ReadDeployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment of old is a few variables: they are passed on, and decide when the manifest says nothing."""
    monkeypatch.setenv("OWNER_DID", "did:plc:ewvi7nxzyoun6zhxrhs64oiz")
    monkeypatch.setenv("PUBLIC_URL", "https://old.example.com")
    monkeypatch.setenv("ATPROTO_SERVICE", "https://pds.example.com")
    found = read("")
    assert found.manifest.gateway.public_url == "https://old.example.com"
    assert found.manifest.owner.service == "https://pds.example.com"
    assert found.environment["SANDBOX_HOST"] == "unix:///var/lib/freehold-link"
    for name in ("OWNER_DID", "PUBLIC_URL", "ATPROTO_SERVICE", "OPENAI_API_KEY"):
        assert found.environment[name] is None, "whoever starts the containers sets it"
    assert [(one.outside, one.inside) for one in found.ports] == [(80, 3000), (2222, 2222)]


def test_no_value_of_the_manifest_is_read_as_something_else() -> None:
    """Every text comes back as itself from a parser that others wrote."""
    yaml = pytest.importorskip("yaml")
    odd = ["yes", "1", "1.5", "null", "a: b", "# no", "- x", "{", "$x", "é", "a\nb", "", "0x1", "~", "2:2", "'", '"']
    tree: dict[str, YamlValue] = {
        "texts": odd,
        "nested": {"a b": [{"x": 1, "y": [True, 2.5]}], "empty": {}, "none": []},
    }
    assert yaml.safe_load(write_yaml(tree)) == tree


def test_the_filters_are_a_profile_that_engines_take(tmp_path: Path) -> None:
    (tmp_path / "freehold.toml").write_text(PUBLIC)
    assert deploy(tmp_path).exit_code == 0
    profile = json.loads((tmp_path / "out/computer-seccomp.json").read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    refused = {name for one in profile["syscalls"] if one["action"] == "SCMP_ACT_ERRNO" for name in one["names"]}
    assert {"mount", "unshare", "bpf"} <= refused
