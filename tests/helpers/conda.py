"""A `conda` for tests, and its channel: a stub stands for each package that envs/ names.

Programs of the channel note that they ran, and start the host's programs.  Packages of R and Python
are links to the host's packages, and have the same dependencies.  So an environment has the
packages that it names, and no other package of R and Python.  Run as a program, the module is the
part of `conda` that Snakemake uses; rattler solves and installs.
"""

import argparse
import asyncio
import importlib.metadata
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import yaml

CHANNEL = "conda-forge"
SITE = f"lib/python3.{sys.version_info.minor}/site-packages"
# The host's Python, next to the settings by which it finds the environment's packages alone.
HIDDEN = "libexec/python3"
START = """#!/bin/sh
here=$(dirname "$(dirname "$0")")
echo "{name} $*" >>"$here/used"
exec {command} "$@"
"""
LIBRARY = "lib/R/library"
R = f'env R_LIBS= R_LIBS_USER="$here/none" R_LIBS_SITE="$here/{LIBRARY}"'
R_PACKAGES = """
all <- installed.packages()
all <- all[is.na(all[, "Priority"]) | all[, "Priority"] != "base", ]
all <- all[!duplicated(all[, "Package"]), ]
of <- tools::package_dependencies(all[, "Package"], all, c("Depends", "Imports", "LinkingTo"))
entry <- function(name) {
  list(path = file.path(all[name, "LibPath"], name), \
needs = as.list(intersect(of[[name]], all[, "Package"])))
}
cat(jsonlite::toJSON(lapply(stats::setNames(nm = names(of)), entry), auto_unbox = TRUE))
"""


class Stub:
    """A package: texts of its programs, links (path → target), names of what it depends on."""

    def __init__(
        self,
        texts: dict[str, str] | None = None,
        links: dict[str, str] | None = None,
        needs: tuple = (),
    ):
        self.texts, self.links, self.needs = texts or {}, links or {}, sorted(needs)


def entries(text: str) -> list[str]:
    """The packages of an environment's file; those of pip are packages of the stub channel too."""
    found = []
    for entry in yaml.safe_load(text)["dependencies"]:
        found += (
            [entry] if isinstance(entry, str) else [of.replace("==", "=") for of in entry["pip"]]
        )
    return found


def named(environments: Path) -> dict[str, str]:
    """The packages that environments name → the longest version asked for, or nothing."""
    found: dict[str, str] = {}
    for file in environments.glob("*.yaml"):
        for entry in entries(file.read_text()):
            name, _, version = (part.strip() for part in entry.partition("="))
            found[name] = max(found.get(name, ""), version, key=len)
    return found


def build(channel: Path, environments: Path) -> None:
    """Write the channel of what environments name and all that this depends on, with an index."""
    from rattler.index import index_fs

    versions = named(environments)
    of_r = json.loads(subprocess.check_output(["Rscript", "-e", R_PACKAGES], text=True))
    of_r = {f"r-{name.lower()}": entry for name, entry in of_r.items()}
    (channel / "linux-64").mkdir(parents=True)
    (channel / "noarch").mkdir()
    waiting, packed = list(versions), set()
    while waiting:
        name = waiting.pop()
        if name not in packed:
            packed.add(name)
            stub = _stub(name, of_r)
            waiting += stub.needs
            # As the environment asks; a version of the real channel is none of a stub's.
            _pack(channel, name, f"{versions.get(name) or 1}.0", stub)
    asyncio.run(index_fs(channel))


def _stub(name: str, of_r: dict) -> Stub:
    if name == "python":
        base = Path(sys._base_executable).resolve()
        start = {
            f"bin/{word}": START.format(name=word, command=f'"$here/{HIDDEN}"')
            for word in ("python", "python3")
        }
        settings = f"home = {base.parent}\ninclude-system-site-packages = false\n"
        return Stub({**start, "pyvenv.cfg": settings}, {HIDDEN: str(base)})
    if name == "r-base":
        return Stub(
            {"bin/Rscript": START.format(name="Rscript", command=f"{R} {shutil.which('Rscript')}")}
        )
    if name.startswith("r-"):
        path = Path(of_r[name]["path"])
        needs = {f"r-{needed.lower()}" for needed in of_r[name]["needs"]}
        return Stub(links={f"{LIBRARY}/{path.name}": str(path)}, needs=(*needs, "r-base"))
    try:
        return _python_package(importlib.metadata.distribution(name))
    except importlib.metadata.PackageNotFoundError:
        program = shutil.which(name)
        assert program, f"{name}, which envs/ names, is not on this host"
        return Stub({f"bin/{name}": START.format(name=name, command=program)})


def _python_package(there: importlib.metadata.Distribution) -> Stub:
    from packaging.requirements import Requirement

    tops = {file.parts[0] for file in there.files or []} - {"..", "__pycache__"}
    wanted = [Requirement(text) for text in there.requires or []]
    needs = {
        one.name.lower()
        for one in wanted
        if one.marker is None or one.marker.evaluate({"extra": ""})
    }
    return Stub(
        links={f"{SITE}/{top}": str(there.locate_file(top)) for top in tops},
        needs=(*needs, "python"),
    )


def _pack(channel: Path, name: str, version: str, stub: Stub) -> None:
    index = {
        "name": name,
        "version": version,
        "build": "0",
        "build_number": 0,
        "depends": stub.needs,
    }
    paths = [{"_path": path, "path_type": "hardlink"} for path in stub.texts]
    paths += [{"_path": path, "path_type": "softlink"} for path in stub.links]
    facts = {
        "info/index.json": json.dumps({**index, "subdir": "linux-64"}),
        "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}),
        "info/files": "".join(f"{entry['_path']}\n" for entry in paths),
    }
    with tarfile.open(
        channel / "linux-64" / f"{name}-{version}-0.tar.bz2", "w:bz2", compresslevel=1
    ) as archive:
        for path, text in {**facts, **stub.texts}.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(text.encode()), 0o755 if path.startswith("bin/") else 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
        for path, target in stub.links.items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)


def install(folder: Path, environments: Path) -> dict[str, str]:
    """Make channel and `conda` in a folder; the variables with which Snakemake finds them."""
    import rattler

    build(folder / CHANNEL, environments)
    (folder / "bin").mkdir()
    conda = folder / "bin/conda"
    code = os.pathsep.join((str(Path(__file__).parent), str(Path(rattler.__file__).parent.parent)))
    conda.write_text(f'#!/bin/sh\nPYTHONPATH={code} exec {sys.executable} -m conda "$@"\n')
    conda.chmod(0o755)
    (folder / "bin/activate").write_text('export CONDA_PREFIX="$1" PATH="$1/bin:$PATH"\n')
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {"CONDA_CHANNEL_ALIAS": folder.as_uri(), "STUB_CONDA": str(folder), "PATH": path}


async def _create(channels: list[str], specifications: list[str], prefix: Path) -> None:
    import rattler

    records = await rattler.solve(
        [rattler.Channel(f"{os.environ['CONDA_CHANNEL_ALIAS']}/{name}") for name in channels],
        [rattler.MatchSpec(specification) for specification in specifications],
        platforms=["linux-64", "noarch"],
    )
    cache = Path(os.environ["STUB_CONDA"]) / "packages"
    await rattler.install(records, prefix, cache_dir=cache, show_progress=False)


def _pinned(text: str) -> list[str]:
    """The specifications of an explicit list of packages, by their addresses."""
    addresses = [
        line.partition("#")[0] for line in text.splitlines() if not line.startswith(("#", "@"))
    ]
    files = [
        address.rpartition("/")[2].removesuffix(".tar.bz2").rsplit("-", 2) for address in addresses
    ]
    return [f"{name} =={version} {made}" for name, version, made in files]


def main(words: list[str]) -> None:
    if words == ["--version"]:
        print("conda 26.7.1")
    elif words[:1] == ["info"]:
        print(json.dumps({"conda_prefix": os.environ["STUB_CONDA"], "platform": "linux-64"}))
    elif words[:1] == ["config"]:
        print(json.dumps({"get": {"channel_priority": "strict"}}))
    elif "create" in words[:2]:
        parser = argparse.ArgumentParser()
        parser.add_argument("--file", type=Path)
        parser.add_argument("--prefix", type=Path)
        options, _ = parser.parse_known_args(words)
        text = options.file.read_text()
        if words[0] == "env":
            asyncio.run(_create(yaml.safe_load(text)["channels"], entries(text), options.prefix))
        else:
            asyncio.run(_create([CHANNEL], _pinned(text), options.prefix))
    elif words[:1] != ["clean"]:
        sys.exit(f"conda: {words} is not known to the tests' conda")


if __name__ == "__main__":
    main(sys.argv[1:])
    sys.stdout.flush()
    # The solver's threads may crash while the interpreter is taken apart.
    os._exit(0)
