"""Keys of earlier versions are still read, with a warning that names the new key."""

from tests.manifest.machine import look


def test_an_old_key_is_read_under_its_new_name_with_a_warning() -> None:
    loaded = look('[gateway]\nsession_idle = "2h"')
    assert loaded.manifest.gateway.sign_in_idle == 7200
    (problem,) = loaded.problems
    assert (problem.code, problem.key, problem.line) == ("W009", "gateway.session_idle", 2)
    assert "gateway.sign_in_idle" in problem.message


def test_the_new_key_wins_over_the_old_one() -> None:
    loaded = look('[gateway]\nsession_idle = "2h"\nsign_in_idle = "3h"')
    assert loaded.manifest.gateway.sign_in_idle == 10800


def test_an_old_variable_sets_the_new_key_with_a_warning() -> None:
    loaded = look("", {"FREEHOLD_GATEWAY_SESSION_ABSOLUTE": "8d"})
    assert loaded.manifest.gateway.sign_in_absolute == 8 * 86400
    assert [problem.code for problem in loaded.problems] == ["W009"]


def test_a_wrong_value_under_an_old_key_is_reported() -> None:
    assert "E006" in [problem.code for problem in look("[gateway]\nsession_idle = true").problems]


def test_an_old_key_where_no_table_stands_is_no_crash() -> None:
    assert [problem.code for problem in look("gateway = 3").problems] == ["E006"]
