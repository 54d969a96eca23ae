"""The tables of values: columns of factors, and the rows of laps."""

import projects
import pytest

from strata.results import tidy


@pytest.mark.parametrize(
    ("orders", "merged"),
    [
        ([], []),
        ([[], ["b"], ["a", "b"]], ["a", "b"]),
        ([["a", "c"], ["a", "b", "c"], ["d"]], ["d", "a", "b", "c"]),
        ([["a", "b"], ["b", "a"]], ["a", "b"]),
    ],
)
def test_columns_of_factors_keep_the_order_of_each_value_if_they_can(orders, merged):
    assert tidy.merge_name_lists(orders) == merged


def test_a_factor_takes_no_other_column_whatever_its_name_and_text(tmp_path):
    row = {
        "environment": "native",
        "workload": "load",
        "repetition": 1,
        "metric": "rate",
        "value": "2",
        "factor_value": "a;b=c",
        "factor_lap": 'say "x"',
    }
    lap = {**row, "lap": 1, "value": "3"}
    found = tidy.CellValues(
        [], {"load": [row, {**row, "factor_value": ""}]}, {"load": [lap]}, {}, []
    )
    tidy.write_value_tables(found, str(tmp_path))
    values = projects.table(tmp_path / "tidy/load.csv")
    assert [projects.factors(row) for row in values] == [
        {"value": "a;b=c", "lap": 'say "x"'},
        {"lap": 'say "x"'},
    ]
    assert {row["value"] for row in values} == {"2"}
    (lap,) = projects.table(tmp_path / "laps/load.csv")
    assert (lap["lap"], lap["value"], lap["factor_lap"]) == ("1", "3", 'say "x"')
