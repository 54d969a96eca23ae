"""What `make doctor` says of the two ways to R and Python: the distribution and .venv, or conda environments."""

import pytest

from strata import doctor


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a profile, and a conda on the path where one is asked for."""

    def build(profile, conda=None):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "profile.yaml").write_text(profile)
        (tmp_path / "bin").mkdir()
        if conda:
            (tmp_path / "bin/conda").write_text(f"#!/bin/sh\necho conda {conda}\n")
            (tmp_path / "bin/conda").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin" if conda else str(tmp_path / "bin"))
        return doctor.software("profile.yaml")[1:]

    return build


@pytest.mark.parametrize(
    "profile",
    ["software-deployment-method: conda\n", "sdm: [conda]\n", "deployment-method:\n  - conda\n", "use-conda: true\n"],
)
def test_conda_by_the_profile_is_told_with_its_version(here, profile):
    assert here(profile, "24.7.1") == (
        True,
        "envs/ by conda, as profile.yaml says: conda 24.7.1",
    )


@pytest.mark.parametrize("conda", [None, "24.7.0"])
def test_conda_by_the_profile_without_a_fit_one_is_bad(here, conda):
    mark, words = here("sdm: conda\n", conda)
    assert mark is False
    assert "conda 24.7.1 or newer is needed" in words
