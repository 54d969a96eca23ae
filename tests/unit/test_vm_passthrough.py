"""Devices for a guest alone: what stands in the way is said with what would change it."""

from strata.vm import passthrough

ADDRESS = "0000:03:10.0"


def device(folder, address=ADDRESS, group=None, virtual=False, functions=False):
    place = folder / address
    place.mkdir(parents=True)
    if group is not None:
        members = folder / "groups" / str(group) / "devices"
        members.mkdir(parents=True, exist_ok=True)
        (members / address).mkdir()
        (place / "iommu_group").symlink_to(members.parent)
    if virtual:
        (place / "physfn").mkdir()
    if functions:
        (place / "sriov_numvfs").write_text("0\n")


def complaint(folder, accelerator="kvm"):
    return passthrough.complaint(ADDRESS, accelerator, str(folder))


def test_a_virtual_function_in_a_group_of_its_own_is_good(tmp_path):
    device(tmp_path, group=4, virtual=True)
    assert complaint(tmp_path) is None


def test_a_device_that_is_not_there(tmp_path):
    assert "lspci -D" in complaint(tmp_path)


def test_emulation_hands_nothing_over(tmp_path):
    device(tmp_path, group=4)
    assert "under KVM only" in complaint(tmp_path, "tcg")


def test_without_an_iommu(tmp_path):
    device(tmp_path)
    assert "IOMMU on" in complaint(tmp_path)


def test_a_whole_card_would_be_lost_to_the_host(tmp_path):
    device(tmp_path, group=4, functions=True)
    assert "virtual functions" in complaint(tmp_path)


def test_neighbours_in_the_group_are_named(tmp_path):
    device(tmp_path, group=4)
    device(tmp_path, "0000:03:10.1", group=4)
    assert "0000:03:10.1" in complaint(tmp_path)
