"""The folder that a command writes is whole, or as it was."""

import contextlib
import errno
import os

import pytest

from strata.archive import output
from strata.util.errors import MachineError, UserError


def files_of(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("existing", [None, "old", ""])
@pytest.mark.parametrize("error", [None, OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_folder_is_whole_or_as_it_was(tmp_path, existing, error):
    target = tmp_path / "a/b/out"
    if existing is not None:
        target.mkdir(parents=True)
        (target / "table").write_text(existing)
    with (
        pytest.raises(type(error)) if error else contextlib.nullcontext(),
        output.write_whole_folder(str(target)) as folder,
    ):
        for name in ("table", "sub/page"):
            os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
            with open(f"{folder}/{name}", "w") as file:
                file.write("new")
        if error:
            raise error
    written = {str(path.relative_to(target)): path.read_text() for path in files_of(target)}
    if not error:
        assert written == {"table": "new", "sub/page": "new"}
    elif existing is None:
        assert not os.listdir(tmp_path)
    else:
        assert written == {"table": existing}


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "x"), MachineError("R failed"), UserError("tar failed")]
)
def test_a_full_disk_is_named_whatever_the_program_says(tmp_path, monkeypatch, error):
    """Not every program says why it cannot write."""
    monkeypatch.setattr(output, "_FULL", 1 << 62)
    with (
        pytest.raises(MachineError, match="its disk is full; free some, or name another folder"),
        output.write_whole_folder(str(tmp_path / "out")),
    ):
        raise error
    assert not os.listdir(tmp_path)
