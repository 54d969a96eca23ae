"""Run the tutorial and the guides that measure in containers from their text, in fresh clones."""

import guides
import pytest

HERE = [name for name, needs in guides.list_guides().items() if "Docker" in needs]


@pytest.mark.long
@pytest.mark.parametrize("guide", HERE)
def test_a_guide_does_what_it_says(image, machine_stays, tmp_path, guide):
    # The tutorial begins with the installation, and so with nothing of this checkout's.
    clone = guides.clone_project(tmp_path / "strata", borrow=guide != "tutorial.md")
    before = guides.list_changes(clone)
    guides.follow_guide(guide, clone)
    # A workload of each kind is a folder, and no other file changes.
    if guide == "adding-a-workload.md":
        new = [line for line in guides.list_changes(clone) if line not in before]
        assert new == ["?? workloads/page/", "?? workloads/sorting/"]
