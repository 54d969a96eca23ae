"""Every guide of docs/ is run from its own text; here those that need no Docker."""

import shutil

import guides
import measured
import pytest

from strata.archive import make
from strata.experiment import workload

HERE = {name: needs for name, needs in guides.list_guides().items() if "Docker" not in needs}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """What a reader brings: an archive, of captured logs."""
    with pytest.MonkeyPatch.context() as patch:
        folder = measured.project(tmp_path_factory.mktemp("theirs") / "project", patch)
        measured.pretend(folder)
        make.write_archive("archive.zip")
    workload.read_declaration.cache_clear()
    return folder / "archive.zip"


@pytest.fixture(scope="module")
def clone(tmp_path_factory, archive):
    folder = guides.clone_project(tmp_path_factory.mktemp("guides") / "strata")
    shutil.copy(archive, folder)
    return folder


@pytest.mark.parametrize(
    "guide",
    [
        pytest.param(name, marks=() if "quick" in needs else pytest.mark.long)
        for name, needs in HERE.items()
    ],
)
def test_a_guide_does_what_it_says(clone, guide):
    guides.follow_guide(guide, clone)


def test_every_guide_has_something_to_type_and_is_run_somewhere():
    for name, needs in guides.list_guides().items():
        assert guides.parse_steps((guides.DOCS / name).read_text()), name
        assert needs in ({"quick"}, {"long"}, {"long", "Docker"}), name
