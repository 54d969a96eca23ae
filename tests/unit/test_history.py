"""What the sides of a history are called, before anything is read."""

import pytest

from strata.archive import history
from strata.base.errors import UserError


def test_sides_are_called_by_their_files_and_told_apart():
    assert history._names(["a/may.zip", "b/june.zip", "c/project/results"], None) == ["may", "june", "project"]
    assert history._names(["a/x.zip", "b/x.zip", "y"], None) == ["x (1)", "x (2)", "y"]
    assert history._names(["a/x.zip", "b/x.zip"], ["old", "new"]) == ["old", "new"]


@pytest.mark.parametrize(
    ("paths", "names", "says"),
    [
        (["a"], None, "at least two sides"),
        (["a", "b"], ["x"], "there are 1 for 2 sides"),
        (["a", "b"], ["x", "x"], "'x' stands twice"),
    ],
)
def test_names_that_do_not_tell_the_sides_apart_are_refused(paths, names, says):
    with pytest.raises(UserError, match=says):
        history._names(paths, names)


def test_a_paper_is_copied_under_a_name_that_every_system_can_hold(tmp_path):
    (tmp_path / "side/paper").mkdir(parents=True)
    (tmp_path / "side/paper/report.pdf").write_bytes(b"%PDF")
    out = tmp_path / "out"
    results = str(tmp_path / "side/results")
    assert history._paper(results, "Mai/Juni: 1", 2, str(out)) == "papers/2-Mai-Juni-1.pdf"
    assert history._paper(results, "/", 3, str(out)) == "papers/3.pdf"
    assert sorted(path.name for path in (out / "papers").iterdir()) == ["2-Mai-Juni-1.pdf", "3.pdf"]
    assert history._paper(str(tmp_path / "other/results"), "x", 1, str(out)) is None


def test_a_side_that_is_not_there_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(UserError, match="there is no such file or folder"):
        history.history([str(tmp_path / "a"), str(tmp_path / "b")], None, None, str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
