"""The files for docker compose: what they are for known manifests, and what changes with the manifest."""

import json
import os
import re
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
from freehold.deploy.kubernetes import write_kubernetes
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
    check_golden("Caddyfile", write_caddyfile(found.manifest, "127.0.0.1:3000"))
    check_golden("freehold.env", write_environment(found))


def print_caddyfile(home: Path, manifest: str) -> Result:
    (home / "freehold.toml").write_text(manifest)
    return CliRunner().invoke(command, ["caddy", "--home", str(home)])


def test_a_caddyfile_is_printed_for_what_containers_could_not_run(tmp_path: Path) -> None:
    """A Freehold on this machine has a GPU, a browser and an archive, and Caddy is in front of it all the same."""
    more = (
        "[gpu]\nenabled = true\n[browser]\nenabled = true\n"
        '[[computer.mounts]]\nkind = "archive"\nsource = "/srv/data.zip"\ntarget = "/mnt/data"\n'
    )
    plain, special = (print_caddyfile(tmp_path, text) for text in (PUBLIC, PUBLIC + more))
    assert (special.exit_code, special.output) == (0, plain.output)
    assert "agent.example.com {" in plain.output
    compose = ["compose", str(tmp_path / "made"), "--brain-image", "a:1", "--computer-image", "b:1"]
    refused = CliRunner().invoke(command, [*compose, "--home", str(tmp_path)])
    assert isinstance(refused.exception, FreeholdError)
    assert "cannot be used in containers" in refused.exception.message


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("", "gateway.public_url is not set"),
        ('[gateway]\npublic_url = "http://agent.example.com"\n', "gateway.public_url is 'http://agent.example.com'"),
    ],
)
def test_no_site_without_a_name_is_printed(tmp_path: Path, setting: str, told: str) -> None:
    refused = print_caddyfile(tmp_path, setting)
    assert isinstance(refused.exception, FreeholdError)
    assert refused.exception.message.startswith(told)
    assert "public_url = " in (refused.exception.hint or "")
    assert refused.output == ""


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


@pytest.mark.parametrize("name", ["compose.override.yaml", "docker-compose.override.yml"])
def test_a_check_tells_of_files_that_compose_joins_with_ours(tmp_path: Path, name: str) -> None:
    (tmp_path / "freehold.toml").write_text(PUBLIC)
    assert deploy(tmp_path).exit_code == 0
    (tmp_path / "out" / name).write_text("services: {computer: {devices: [/dev/fuse]}}\n")
    caught = deploy(tmp_path, "--check").exception
    assert isinstance(caught, FreeholdError)
    assert (caught.code, name in caught.message) == ("deploy.drifted", True)


@pytest.mark.parametrize(
    "place", ["freehold-computer.container.d", "container.d", "freehold-.container.d", "../freehold-home.volume.d"]
)
def test_a_check_tells_of_files_that_podman_joins_with_ours(tmp_path: Path, place: str) -> None:
    (tmp_path / "freehold.toml").write_text(PUBLIC)
    units = tmp_path / "systemd/freehold"
    words = ["quadlet", str(units), "--home", str(tmp_path), "--brain-image", "a:1", "--computer-image", "b:1"]
    assert CliRunner().invoke(command, words).exit_code == 0
    assert CliRunner().invoke(command, [*words, "--check"]).exit_code == 0
    (units / place).mkdir()
    (units / place / "10-more.conf").write_text("[Container]\nAddDevice=/dev/fuse\n")
    caught = CliRunner().invoke(command, [*words, "--check"]).exception
    assert isinstance(caught, FreeholdError)
    assert (caught.code, "10-more.conf" in caught.message) == ("deploy.drifted", True)


def test_the_control_center_is_published_where_the_manifest_says(read: ReadDeployment) -> None:
    """On this machine only, the proxy there is trusted: its connections come from the gateway of a known network."""
    for address, port in (("127.0.0.1", "127.0.0.1:3000:3000"), ("::1", "[::1]:3000:3000")):
        found = read(PUBLIC + f'[deploy]\nhttp_address = "{address}"\nhttp_port = 3000\n')
        compose = write_compose(found)
        assert f'- "{port}"' in compose
        assert 'gateway: "10.213.77.1"' in compose
        assert 'FREEHOLD_GATEWAY_TRUSTED_PROXIES: "10.213.77.1"' in compose
        units = write_quadlet(found, Path("/srv/freehold"))
        assert f"PublishPort={port}" in units["freehold-brain.container"]
        assert "Network=freehold-front.network" in units["freehold-brain.container"]
        assert "Gateway=10.213.77.1" in units["freehold-front.network"]
    public = write_compose(read(PUBLIC))
    assert '- "80:3000"' in public
    assert "freehold-front.network" not in write_quadlet(read(PUBLIC), Path("/srv/freehold"))
    assert "TRUSTED_PROXIES" not in public, "whoever reaches it there is no proxy"
    for odd in ("agent.example.com", "127.0.0.1:80", "0.0.0.0\\nports"):
        with pytest.raises(FreeholdError) as caught:
            read(PUBLIC + f'[deploy]\nhttp_address = "{odd}"\n')
        assert caught.value.code == "deploy.invalid"


def test_another_image_of_caddy_is_used_when_the_manifest_names_one(read: ReadDeployment) -> None:
    image = "registry.example.com/caddy@sha256:" + 64 * "a"
    assert f'image: "{image}"' in write_compose(read(PUBLIC + f'[deploy]\ncaddy = true\ncaddy_image = "{image}"\n'))
    plain = write_compose(read(PUBLIC + "[deploy]\ncaddy = true\n"))
    assert re.search(r'image: "caddy:\d+\.\d+\.\d+"', plain), "the version does not change by itself"


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
    odd = [
        *(".5", ".inf", "a\u2028b", "a\x85b", "\ufeff", "a\x7f", "😀"),
        "yes",
        "1",
        "1.5",
        "null",
        "a: b",
        "# no",
        "- x",
        "{",
        "$x",
        "é",
        "a\nb",
        "",
        "0x1",
        "~",
        "2:2",
        "'",
        '"',
    ]
    tree: dict[str, YamlValue] = {
        "texts": odd,
        "nested": {"a b": [{"x": 1, "y": [True, 2.5]}], "empty": {}, "none": []},
    }
    assert yaml.safe_load(write_yaml(tree)) == tree


ODD_PATHS = ["a:b", "a\nb", "a\tb", "a\x85b", "a\u2028b"]
ODD_IN_UNITS = [*ODD_PATHS, "a b", "a%h", "a$b", 'a"b', "a\\b"]


@pytest.mark.parametrize("name", ODD_IN_UNITS)
def test_no_path_of_the_manifest_becomes_another_volume_or_line(
    read: ReadDeployment, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    """A colon would begin the target, and a line end would begin a setting of the container."""
    folder = tmp_path_factory.mktemp("mounts") / name
    folder.mkdir()
    for setting in (
        f'[[computer.mounts]]\nsource = {json.dumps(str(folder))}\ntarget = "/mnt/x"\n',
        f'[[computer.mounts]]\nsource = "/usr/share/doc"\ntarget = {json.dumps(f"/mnt/{name}")}\n',
        f'[[computer.mounts]]\nkind = "memory"\nsize = "1MiB"\ntarget = {json.dumps(f"/mnt/{name}")}\n',
        f"[backup]\nto = {json.dumps(str(folder))}\n",
    ):
        found = read(PUBLIC + setting)
        with pytest.raises(FreeholdError) as caught:
            write_quadlet(found, Path("/srv/freehold"))
        assert caught.value.code == "deploy.odd-path"
        if name in ODD_PATHS:
            with pytest.raises(FreeholdError) as caught:
                write_compose(found)
            assert caught.value.code == "deploy.odd-path"
        else:
            assert write_compose(found)


@pytest.mark.parametrize("name", ["a b", "x\nVolume=/:/host", "-v", "a$b", ""])
def test_no_name_of_an_image_becomes_another_line(read: ReadDeployment, name: str) -> None:
    for odd in (
        replace(read(PUBLIC), brain_image=name),
        replace(read(PUBLIC), computer_image=name),
    ):
        for write in (
            write_compose,
            lambda found: write_quadlet(found, Path("/srv/freehold")),
            lambda found: write_kubernetes(found, PUBLIC, "statefulset"),
        ):
            with pytest.raises(FreeholdError) as caught:
                write(odd)
            assert caught.value.code == "deploy.odd-image"


def test_the_filters_are_a_profile_that_engines_take(tmp_path: Path) -> None:
    (tmp_path / "freehold.toml").write_text(PUBLIC)
    assert deploy(tmp_path).exit_code == 0
    profile = json.loads((tmp_path / "out/computer-seccomp.json").read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    refused = {name for one in profile["syscalls"] if one["action"] == "SCMP_ACT_ERRNO" for name in one["names"]}
    assert {"mount", "unshare", "bpf"} <= refused
