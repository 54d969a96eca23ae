"""What `make doctor` says of the two ways to R and Python: the distribution and .venv, or conda environments."""

import pytest

from strata import doctor


@pytest.mark.parametrize(
    ("profile", "conda", "fit", "words"),
    [
        ("software-deployment-method: conda\n", True, True, "by conda, as profile.yaml says"),
        ("sdm: [conda]\n", True, True, "by conda, as profile.yaml says"),
        ("deployment-method:\n  - conda\n", True, True, "by conda, as profile.yaml says"),
        ("use-conda: true\n", True, True, "by conda, as profile.yaml says"),
        ("sdm: conda\n", False, False, "there is none"),
        ("cores: 1\n", False, True, "this machine's R"),
    ],
)
def test_conda_by_the_profile_is_told(tmp_path, monkeypatch, profile, conda, fit, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "profile.yaml").write_text(profile)
    (tmp_path / "bin").mkdir()
    if conda:
        (tmp_path / "bin/conda").write_text("#!/bin/sh\n")
        (tmp_path / "bin/conda").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin" if conda else str(tmp_path / "bin"))
    _, mark, said = doctor.software("profile.yaml")
    assert mark is fit
    assert words in said
