"""What `make doctor` says of the two ways to R and Python: the distribution and .venv, or conda environments."""

import pytest

from strata import doctor


@pytest.mark.parametrize(
    ("profile", "conda", "fit", "words"),
    [
        ("software-deployment-method: conda\n", "24.7.1", True, "as profile.yaml says: conda 24.7.1"),
        ("sdm: [conda]\n", "24.7.1", True, "as profile.yaml says: conda 24.7.1"),
        ("deployment-method:\n  - conda\n", "24.7.1", True, "as profile.yaml says: conda 24.7.1"),
        ("use-conda: true\n", "24.7.1", True, "as profile.yaml says: conda 24.7.1"),
        ("sdm: conda\n", None, False, "conda 24.7.1 or newer is needed"),
        ("sdm: conda\n", "24.7.0", False, "conda 24.7.1 or newer is needed"),
        ("cores: 1\n", None, True, "this machine's R"),
    ],
)
def test_conda_by_the_profile_is_told_with_its_version(tmp_path, monkeypatch, profile, conda, fit, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "profile.yaml").write_text(profile)
    (tmp_path / "bin").mkdir()
    if conda:
        (tmp_path / "bin/conda").write_text(f"#!/bin/sh\necho conda {conda}\n")
        (tmp_path / "bin/conda").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin" if conda else str(tmp_path / "bin"))
    _, mark, said = doctor.software("profile.yaml")
    assert mark is fit
    assert words in said
