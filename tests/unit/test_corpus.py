"""The text that pxz compresses: cut or repeated to its size, or refused."""

import gzip
import subprocess

import projects
import pytest

TEXT = b"some words of prose\n" * 5000


@pytest.fixture
def prepare_text(tmp_path):
    """Runs prepare.sh with a dictionary for a size in bytes: its result and the text's path."""

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
def test_the_text_is_cut_or_repeated_to_its_size(prepare_text, size):
    result, output = prepare_text(gzip.compress(TEXT), size)
    assert result.returncode == 0, result.stderr
    assert output.read_bytes() == (TEXT * 4)[:size]


@pytest.mark.parametrize(
    "damaged",
    [gzip.compress(TEXT)[:-30], b"", b"no archive", gzip.compress(b"")],
    ids=["cut short", "empty", "no archive", "of no text"],
)
def test_a_damaged_dictionary_is_refused(prepare_text, damaged):
    result, _ = prepare_text(damaged, 3 * len(TEXT))
    assert result.returncode == 1
    assert "the corpus could not be read" in result.stderr or "holds no text" in result.stderr
    assert not result.stdout
