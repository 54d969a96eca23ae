import subprocess

import pytest

from strata.base.errors import UserError
from strata.experiment import config
from strata.reanalysis import source


def git(folder, *arguments):
    identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def results(tmp_path):
    """A folder that looks like the published results, with a private key."""
    log = tmp_path / "raw/Stream/results/vm.log"
    log.parent.mkdir(parents=True)
    log.write_text("Triad: 45.6\n")
    key = tmp_path / "raw/common/id_rsa"
    key.parent.mkdir()
    key.write_text("PRIVATE KEY\n")
    return tmp_path / "raw"


@pytest.fixture
def repository(results):
    git(results, "init", "-q")
    git(results, "add", "-A")
    git(results, "commit", "-q", "-m", "results")
    return results


def test_a_folder_a_checkout_and_a_bare_directory_are_good(results, tmp_path):
    assert source.complaint(str(results)) is None
    git(results, "init", "-q")
    git(results, "add", "-A")
    git(results, "commit", "-q", "-m", "results")
    assert source.complaint(str(results)) is None
    git(results, "clone", "-q", "--bare", str(results), str(tmp_path / "bare"))
    assert source.complaint(str(tmp_path / "bare")) is None


def test_what_is_no_folder_of_results_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "repository")], check=True)
    for name in ("nowhere", "file", "empty", "repository"):
        assert str(tmp_path / name) in (source.complaint(str(tmp_path / name)) or "")


def test_the_config_names_the_folder_or_says_what_is_missing(checkout, results):
    assert config.read({"published_raw": str(results)})["published_raw"] == str(results)
    for wrong in ("/nowhere", 2014):
        with pytest.raises(UserError, match=r"config\.yaml: published_raw: "):
            source.named(config.read({"published_raw": wrong}))
    with pytest.raises(UserError, match="published_raw"):
        source.named(config.read())
