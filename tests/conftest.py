import pytest


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a function that makes a project on the bare host the working directory.

    The project has its own home folder and its own lock of the machine.
    """
    import projects

    from strata.experiment import workload
    from strata.util import locks

    def build(config=None, workloads=None):
        workload.read_declaration.cache_clear()
        folder = projects.make(
            tmp_path / "project",
            config or projects.on_host(),
            {"noop": projects.NOOP} if workloads is None else workloads,
        )
        monkeypatch.chdir(folder)
        return folder

    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("STRATA_TEST_LOCK", str(tmp_path / "lock"))
    monkeypatch.setattr(locks, "TEST_FOLDER", str(tmp_path / "lock"))
    monkeypatch.delenv("STRATA_OWNER", raising=False)
    yield build
    workload.read_declaration.cache_clear()


@pytest.fixture
def checkout(monkeypatch):
    """Make the checkout the working directory."""
    import projects

    from strata.experiment import workload

    workload.read_declaration.cache_clear()
    monkeypatch.chdir(projects.ROOT)
    monkeypatch.delenv("STRATA_OWNER", raising=False)
    yield projects.ROOT
    workload.read_declaration.cache_clear()
