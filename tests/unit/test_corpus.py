"""The text that pxz compresses: cut or repeated to its size, and never less of it without a word."""

import gzip
import subprocess

import projects
import pytest

TEXT = b"some words of prose\n" * 5000


@pytest.fixture
def lay_out(tmp_path):
    """Run the workload's program with a dictionary of these bytes, asked for so many; how it ended, and its output."""

    def run(dictionary, size, output="corpus"):
        packed, program = tmp_path / "gcide.dict.dz", tmp_path / "prepare.sh"
        packed.write_bytes(dictionary)
        text = (projects.ROOT / "workloads/pxz/prepare.sh").read_text()
        assert text.count("/usr/share/dictd/gcide.dict.dz") == 1
        program.write_text(text.replace("/usr/share/dictd/gcide.dict.dz", str(packed)))
        argv = ["bash", str(program), str(tmp_path / output), str(size)]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60), tmp_path / output

    return run


@pytest.mark.parametrize("size", [1, 5000, len(TEXT), len(TEXT) + 1, 3 * len(TEXT) + 7])
def test_the_text_is_cut_or_repeated_to_its_size(lay_out, size):
    done, output = lay_out(gzip.compress(TEXT), size)
    assert done.returncode == 0, done.stderr
    assert output.read_bytes() == (TEXT * 4)[:size]


@pytest.mark.parametrize(
    "damaged",
    [gzip.compress(TEXT)[:-30], b"", b"no archive", gzip.compress(b"")],
    ids=["cut short", "empty", "no archive", "of nothing"],
)
def test_a_damaged_text_is_told_and_not_repeated(lay_out, damaged):
    done, _ = lay_out(damaged, 3 * len(TEXT))
    assert done.returncode == 1
    assert "the corpus could not be read" in done.stderr or "holds no text" in done.stderr
    assert not done.stdout
