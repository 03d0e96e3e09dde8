"""The table of what each agent can do has every agent, as it is described now."""

import pytest
from tools.agent_matrix import STEPS, Row, read_rows, read_table


@pytest.mark.parametrize("row", read_rows(), ids=lambda row: row.name)
def test_the_table_was_written_for_this_version_of_the_agent(row: Row) -> None:
    """`python -m tools.agent_matrix NAME` writes its line."""
    line = read_table()[row.name]
    assert line.startswith(f"| `{row.name}` | {row.package} | ")
    words = [word.strip() for word in line.strip("|").split("|")[2:]]
    assert len(words) == len(STEPS)
    assert set(words) <= {"yes", "no", "by text"}
