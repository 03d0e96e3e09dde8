"""Every rule speaks when it should and is silent when it should not."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.manifest.cases import CASES, OWNER
from tests.manifest.machine import GIB, LAPTOP, look, only

from freehold.egress.policy import parse_pattern
from freehold.manifest import Manifest
from freehold.manifest.checks import RESERVED, RETIRED, CheckFinding, CheckRegistry, load_checks
from freehold.manifest.facts import MachineFacts

CODES = [rule.code for rule in load_checks()]


def test_every_rule_has_a_case_and_every_case_a_rule() -> None:
    assert sorted(CODES) == sorted(CASES)


def test_there_are_thirty_rules_and_more() -> None:
    assert len(CODES) >= 30


@pytest.mark.parametrize("code", CODES)
def test_rule_speaks(code: str) -> None:
    case = CASES[code]
    loaded = look(case.breaks, case.environ, **case.machine)
    told = [problem for problem in loaded.problems if problem.code == code]
    assert [problem.key for problem in told] == [case.key], loaded.problems
    assert case.says in told[0].message
    assert told[0].hint
    assert told[0].severity == ("error" if code.startswith("E") else "warning")
    assert told[0].line or case.key not in case.breaks


@pytest.mark.parametrize("code", CODES)
def test_rule_is_silent(code: str) -> None:
    case = CASES[code]
    machine = case.machine if case.keeps_machine is None else case.keeps_machine
    loaded = look(case.keeps, case.environ, **machine)
    assert code not in {problem.code for problem in loaded.problems}, loaded.problems
    structural = {"E001", "E002", "E003", "E004", "E005", "E006"}
    assert not structural & {problem.code for problem in loaded.problems}, "the case itself is not well-formed"


def test_an_empty_manifest_has_no_problem_on_a_laptop() -> None:
    assert look("").problems == ()


def test_registry_refuses_a_code_twice_even_as_the_other_kind() -> None:
    registry = CheckRegistry()

    def check(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
        """Says nothing."""
        yield from ()

    registry.register("E950")(check)
    for code in ("E950", "W950"):
        with pytest.raises(ValueError, match="never reused"):
            registry.register(code)


@pytest.mark.parametrize("code", ["E001", "W003"])
def test_registry_refuses_the_codes_of_reading(code: str) -> None:
    with pytest.raises(ValueError, match="never reused"):
        CheckRegistry().register(code)


def test_registry_refuses_a_retired_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.manifest.checks.RETIRED", frozenset({"E960"}))
    with pytest.raises(ValueError, match="never reused"):
        CheckRegistry().register("E960")


@pytest.mark.parametrize("code", ["X100", "E1", "E10A", "E1000", ""])
def test_registry_refuses_what_is_no_code(code: str) -> None:
    with pytest.raises(ValueError, match="not a code"):
        CheckRegistry().register(code)


def test_no_retired_code_is_in_use() -> None:
    assert not RETIRED & {*CODES, *RESERVED}


PORTS = {"gateway": "port", "keeper": "port", "ssh": "port", "observe": "metrics_port"}


@pytest.mark.parametrize(("one", "other"), list(combinations(PORTS, 2)))
def test_every_pair_of_ports_can_collide(one: str, other: str) -> None:
    sections = {
        name: f"[{name}]\n{key} = {7000 if name in (one, other) else 7001 + index}\n"
        for index, (name, key) in enumerate(PORTS.items())
    }
    sections["ssh"] += "enabled = true\n"
    told = [problem for problem in look("".join(sections.values())).problems if problem.code == "E101"]
    assert len(told) == 1
    assert f"{one}.{PORTS[one]}" in told[0].message
    assert f"{other}.{PORTS[other]}" in told[0].message


def test_ports_on_two_addresses_do_not_collide_but_on_all_addresses_they_do() -> None:
    apart = '[gateway]\nhost = "127.0.0.1"\nport = 7000\n[keeper]\nhost = "127.0.0.2"\nport = 7000'
    assert look(apart).problems == ()
    wild = apart.replace("127.0.0.1", "0.0.0.0")
    assert "E101" in {problem.code for problem in look(wild).problems}


def test_ssh_that_is_off_takes_no_port() -> None:
    assert look("[ssh]\nenabled = false\nport = 3000").problems == ()


@pytest.mark.parametrize("section", ["gateway", "keeper", "ssh"])
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "::ffff:192.168.1.2"])
def test_nothing_listens_to_the_network_without_an_owner(section: str, host: str) -> None:
    extra = "enabled = true\n" if section == "ssh" else ""
    text = f'[{section}]\n{extra}host = "{host}"'
    assert f"{section}.host" in {problem.key for problem in look(text).problems if problem.code == "E114"}
    assert "E114" not in {problem.code for problem in look(OWNER + text).problems}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"])
def test_loopback_needs_no_owner(host: str) -> None:
    assert look(f'[gateway]\nhost = "{host}"').problems == ()


@pytest.mark.parametrize(
    "source",
    ["/", "/proc", "/proc/1", "/sys", "/dev/shm", "/run/docker.sock", "/var/run/x.sock", "/etc", "/var", "/var/lib/docker/volumes",
     "/home", "~", "~/.ssh", "~/.ssh/id_ed25519", "~/.aws", "~/.config", "~/.gnupg",
     "~/.local/share/freehold", "~/.local/share/freehold/vault", "~/.local/share"],
)  # fmt: skip
def test_dangerous_mounts_are_refused(source: str) -> None:
    text = f'[[computer.mounts]]\nsource = "{source}"\ntarget = "/mnt/a"'
    assert "E221" in {problem.code for problem in look(text).problems}


def test_a_link_to_a_dangerous_folder_is_as_dangerous(tmp_path: Path) -> None:
    link = tmp_path / "harmless"
    link.symlink_to("/proc")
    text = f'[[computer.mounts]]\nsource = "{link}"\ntarget = "/mnt/a"'
    assert "E221" in {problem.code for problem in look(text, real=MachineFacts.gather(tmp_path / "home").real).problems}


@pytest.mark.parametrize(
    "target", ["", "mnt", "/", "/workspace", "/home/agent", "/etc/x", "/mnt/../etc", "/opt/freehold"]
)
def test_mounts_may_not_cover_the_computer(target: str) -> None:
    text = f'[[computer.mounts]]\nsource = "~/code"\ntarget = "{target}"'
    assert only(look(text)).code == "E224"


S3, DAV, POD, OWN = (
    f'[[computer.mounts]]\ntarget = "/mnt/a"\nkind = "{kind}"\n' for kind in ("s3", "webdav", "solid", "rclone")
)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (S3 + 'source = "photos"', "endpoint"),
        (S3 + 'source = ""\nendpoint = "https://a.example"', "source"),
        (S3 + 'source = "photos/../other"\nendpoint = "https://a.example"', "source"),
        (S3 + 'source = "photos"\nendpoint = "https://a.example:0"', "endpoint"),
        (S3 + 'source = "photos"\nendpoint = "file:///etc"', "endpoint"),
        (S3 + 'source = "photos"\nendpoint = "https://a.example"\nkey = "env:KEY"', "key"),
        (S3 + 'source = "photos"\nendpoint = "https://a.example"\nhosts = ["b.example"]', "hosts"),
        (DAV + 'source = "../x"\nendpoint = "https://a.example"', "source"),
        (DAV + 'source = "x"\nendpoint = "https://a.example"\nregion = "x"', "region"),
        (DAV + 'source = "x"\nendpoint = "https://a.example"\nsize = "1MiB"', "size"),
        (POD + 'endpoint = "https://a.example"\nuser = "x"', "key"),
        (POD + 'endpoint = "https://a.example"\nkey = "secret:a"', "user"),
        (POD + 'endpoint = "http://a.example"\nuser = "x"\nkey = "secret:a"', "endpoint"),
        (POD + 'endpoint = "https://a.example"\nuser = "x"\nkey = "secret:a"\nissuer = "http://b.example"', "issuer"),
        (POD + 'endpoint = "https://a.example"\nuser = "x"\nkey = "secret:a"\nissuer = "file:///x"', "issuer"),
        (DAV + 'source = "x"\nendpoint = "https://a.example"\nissuer = "https://b.example"', "issuer"),
        (OWN + 'source = "Documents"\nkey = "secret:a"\nhosts = ["b.example"]', "source"),
        (OWN + 'source = "drive:"\nhosts = ["b.example"]', "key"),
        (OWN + 'source = "drive:"\nkey = "secret:a"', "hosts"),
        (OWN + 'source = "drive:"\nkey = "secret:a"\nhosts = ["https://b.example/x"]', "hosts[0]"),
        (OWN + f'source = "drive:"\nkey = "secret:a"\nhosts = {["b.example"] * 33}', "hosts"),
    ],
)
def test_a_remote_mount_with_a_wrong_setting_is_refused(text: str, key: str) -> None:
    assert only(look(text)).key == f"computer.mounts[0].{key}"


@pytest.mark.parametrize("backend", ["microvm", "bubblewrap"])
@pytest.mark.parametrize("other", ["/mnt/a/b", "/mnt"])
def test_a_remote_mount_of_a_virtual_machine_may_not_overlap_another(backend: str, other: str) -> None:
    remote = DAV + 'source = "x"\nendpoint = "https://a.example"\n'
    text = f'[computer]\nbackend = "{backend}"\n{remote}[[computer.mounts]]\nsource = "~/a"\ntarget = "{other}"'
    refused = [problem.key for problem in look(text).problems if problem.code == "E226"]
    assert refused == (["computer.mounts[0].target"] if backend == "microvm" else [])


def test_two_mounts_may_not_share_a_target() -> None:
    text = '[[computer.mounts]]\nsource = "~/a"\ntarget = "/mnt/a"\n[[computer.mounts]]\nsource = "~/b"\ntarget = "/mnt/a"\n'
    assert only(look(text)).key == "computer.mounts[1].target"


@pytest.mark.parametrize("rule", ["*", "com", "*.com", "*.COM.", "com:443", "localdomain"])
def test_egress_rules_may_not_be_half_the_internet(rule: str) -> None:
    assert "E303" in {problem.code for problem in look(f'[egress]\nallow = ["{rule}"]').problems}


@pytest.mark.parametrize("rule", ["0.0.0.0/0", "10.0.0.0/8", "::/0", "1.2.3.4/32"])
def test_egress_rules_may_not_be_ranges(rule: str) -> None:
    assert only(look(f'[egress]\nallow = ["{rule}"]')).code == "E302"


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "http://a.com",
        "a.com/path",
        "a b.com",
        "a.com:0",
        "a.com:70000",
        "a.com:x",
        "*.*.com",
        "2130706433",
        "0x7f.1",
        "127.1",
        "localhost:3000",
        "*.localhost",
        "::ffff:10.0.0.1",
        "a..com",
        "-a.com",
        "a\\u202e.com",
    ],
)
def test_egress_rules_that_are_no_hosts_are_refused(rule: str) -> None:
    assert {"E304"} <= {problem.code for problem in look(f'[egress]\nallow = ["{rule}"]').problems}


@pytest.mark.parametrize(
    "rule",
    [
        "api.test",
        "*.code.test:443",
        "9.9.9.9:53",
        "[2620:fe::fe]:443",
        "2620:fe::fe",
        "bücher.example.org",
        "a_b.example.com",
    ],
)
def test_egress_rules_that_are_hosts_are_taken(rule: str) -> None:
    assert look(f'[egress]\nallow = ["{rule}"]').problems == ()


@pytest.mark.parametrize(
    "rule",
    [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "100.64.0.1",
        "[::1]:80",
        "fd00::1",
        "nas.local",
        "fd00::2",
    ],
)
def test_private_addresses_need_an_exception(rule: str) -> None:
    text = f'[egress]\nallow = ["{rule}"]'
    assert only(look(text)).code == "E901"
    assert look(text + '\n[security.exceptions.private-egress]\nreason = "the printer"').problems == ()


@pytest.mark.parametrize(
    ("feature", "text"),
    [
        ("public-keeper", OWNER + '[keeper]\nhost = "0.0.0.0"'),
        ("public-metrics", '[observe]\nmetrics_host = "192.168.1.2"'),
        ("private-egress", '[egress]\nallow = ["10.0.0.1"]'),
        ("unasked-agent", '[agents.mine]\ncommand = "x"\nmode = "bypassPermissions"'),
        ("plain-model", '[models.a]\nbase_url = "http://llm.example.com/v1"\nkey = "secret:a"'),
    ],
)
def test_an_exception_holds_until_its_day_and_no_longer(feature: str, text: str) -> None:
    assert [problem.severity for problem in look(text).problems] == ["error"]
    granted = f'{text}\n[security.exceptions.{feature}]\nreason = "because"\nuntil = "2026-11-15"'
    assert look(granted).problems == ()
    late = look(granted.replace("2026-11-15", "2026-11-14")).problems
    assert {problem.code for problem in late} in ({"E901", "W904"}, {"E104", "W904"})


@pytest.mark.parametrize(
    "name",
    [
        "memory",
        "processes",
        "cpus",
        "open_files",
        "file_size",
        "disk",
        "inodes",
        "output",
        "cpu_time",
        "wall_time",
        "tmp",
    ],
)
def test_no_limit_can_be_zero_or_less(name: str) -> None:
    for value in ("0", "-1"):
        assert only(look(f"[computer.limits]\n{name} = {value}")).code == "E202"


def test_a_full_disk_never_stops_freehold() -> None:
    loaded = look('[history]\nquota = "20GiB"\n[computer.limits]\ndisk = "50GiB"', free_disk=0, history_size=lambda: 0)
    assert not loaded.errors
    assert [problem.code for problem in loaded.warnings] == ["W606", "W205"]


def test_a_quota_that_history_fills_already_is_not_above_the_disk() -> None:
    assert look('[history]\nquota = "20GiB"', free_disk=GIB, history_size=lambda: 19 * GIB).problems == ()


def test_service_ports_stay_out_of_each_others_way() -> None:
    web = '[computer.services.web]\ncommand = "x"\nport = 5173\n'
    assert only(look(web + '[computer.services.api]\ncommand = "x"\nport = 5173')).code == "E207"
    assert only(look(web.replace("5173", "3128"))).code == "E207"


@settings(deadline=None)
@given(
    st.text("ab.:*-_[]/0127 xf", max_size=14)
    | st.sampled_from(
        [
            "api.test",
            "*.code.test:443",
            "[2620:fe::fe]:443",
            "bücher.example.org",
            "*.1.2.3.4",
            "::ffff:1.2.3.4",
            "localhost",
            "PyPI.org.",
        ]
    )
)
def test_an_egress_rule_that_passes_is_one_that_egress_takes(text: str) -> None:
    if not {"E302", "E303", "E304"} & {problem.code for problem in look(f'[egress]\nallow = ["{text}"]').problems}:
        parse_pattern(text)


@pytest.mark.parametrize("did", ["did:plc:ewvi7nxzyoun6zhxrhs64oiz", "did:web:example.com"])
def test_both_kinds_of_did_are_taken(did: str) -> None:
    assert look(f'[owner]\ndid = "{did}"').problems == ()


@pytest.mark.parametrize(
    "did",
    [
        "",
        "did:web:",
        "did:web:localhost",
        "did:web:a.com:8080",
        "did:web:a.com%3A80",
        "did:key:z6Mk",
        "DID:PLC:x",
        "did:plc:EWVI7NXZYOUN6ZHXRHS64OIZ",
        "did:web:a.com/x",
    ],
)
def test_other_dids_are_refused(did: str) -> None:
    assert "E111" in {problem.code for problem in look(f'[owner]\ndid = "{did}"').problems}


@pytest.mark.parametrize(
    "handle",
    [
        "",
        "alice",
        "@a.com",
        "a_b.com",
        "alice.local",
        "alice.123",
        "a..com",
        "alice.com.",
        "älice.com",
        "https://a.com",
    ],
)
def test_odd_handles_are_refused(handle: str) -> None:
    assert only(look(f'{OWNER}handle = "{handle}"')).code == "E112"


@pytest.mark.parametrize(
    "url",
    [
        "https://u:p@a.example.com",
        "https://a.example.com/path",
        "https://a.example.com?x=1",
        "https://",
        "ftp://a.example.com",
        "https://a.example.com\\\\@b.com",
        "https://a.com:99999",
    ],
)
def test_a_public_url_is_an_origin_and_nothing_more(url: str) -> None:
    assert "E115" in {problem.code for problem in look(f'{OWNER}[gateway]\npublic_url = "{url}"').problems}


def test_rules_are_pure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that looks at the real environment instead of at the facts would see this key."""
    monkeypatch.setenv("NOT_SET", "a-real-value")
    assert only(look('[models.a]\nkind = "openai"\nkey = "env:NOT_SET"')).code == "E403"
    assert LAPTOP.environ == {}
