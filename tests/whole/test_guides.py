"""Every guide of docs/ is run from its own text; here those that need no Docker."""

import shutil

import guides
import measured
import pytest

from strata.archive import make, rebuild
from strata.experiment import workload

HERE = {name: needs for name, needs in guides.guides().items() if "Docker" not in needs}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """What a reader brings: an archive, of captured logs."""
    with pytest.MonkeyPatch.context() as patch:
        folder = measured.project(tmp_path_factory.mktemp("theirs") / "project", patch)
        rebuild.remake(str(folder), False)
        make.make("archive.zip", False)
    workload.load.cache_clear()
    return folder / "archive.zip"


@pytest.fixture(scope="module")
def clone(tmp_path_factory, archive):
    folder = guides.clone(tmp_path_factory.mktemp("guides") / "strata")
    shutil.copy(archive, folder)
    return folder


@pytest.mark.parametrize(
    "guide",
    [pytest.param(name, marks=() if "quick" in needs else pytest.mark.long) for name, needs in HERE.items()],
)
def test_a_guide_does_what_it_says(clone, guide):
    guides.follow(guide, clone)


def test_every_guide_has_something_to_type_and_is_run_somewhere():
    for name, needs in guides.guides().items():
        assert guides.steps((guides.DOCS / name).read_text()), name
        assert needs in ({"quick"}, {"long"}, {"long", "Docker"}), name


def test_what_is_typed_and_what_is_shown_is_told_from_what_is_read():
    typed, shown = "```sh\nmake x\n```\n", "```text\na … c\n\nd\n```\n"
    read = "```yaml\nno: command\n```\n"
    text = f"{typed}\n{shown}\n{read}\n{typed}said\n\n{shown}"
    first, second = guides.steps(text)
    assert (first.line, first.commands, first.shown) == (2, "make x\n", ["a … c", "d"])
    assert (second.commands, second.shown) == ("make x\n", [])


def test_what_is_shown_must_have_been_printed_in_its_order():
    printed = "noise\na b  c\nd\n"
    assert guides.lacking(["a … c", "d"], printed) is None
    assert guides.lacking(["d", "a … c"], printed) == "a … c"
    assert guides.lacking(["a"], printed) == "a"


def test_a_step_that_fails_or_shows_something_else_ends_the_guide(tmp_path, monkeypatch):
    monkeypatch.setattr(guides, "DOCS", tmp_path)
    guide = tmp_path / "guide.md"
    for text, told in (
        ("```sh\nfalse | true\n```\n", "guide.md:2 ended with 1"),
        ("```sh\necho a\n```\n```text\nb\n```\n", "what is shown:\nb"),
    ):
        guide.write_text(text)
        with pytest.raises(AssertionError, match=told):
            guides.follow("guide.md", tmp_path)
