"""The channel: one small package for each that an environment may ask for.

A stub holds nothing of its own. Programs are scripts that call the host's; R and Python packages are links to the
host's, with all that they depend on, and nothing else is seen: what an environment does not name is not there.
"""

import asyncio
import importlib.metadata
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

PYTHON = """#!/bin/sh
here=$(dirname "$(dirname "$0")")
echo "python $*" >>"$here/used"
PYTHONPATH="$here/site:$PYTHONPATH" exec {python} -S -s "$@"
"""
RSCRIPT = """#!/bin/sh
here=$(dirname "$(dirname "$0")")
echo "Rscript $*" >>"$here/used"
R_LIBS= R_LIBS_USER="$here/none" R_LIBS_SITE="$here/library" exec {rscript} "$@"
"""
PROGRAM = """#!/bin/sh
echo "{name} $*" >>"$(dirname "$(dirname "$0")")/used"
exec {program} "$@"
"""
# Versions as the channel has them today, of what is not looked up on the host.
VERSIONS = {
    "python": "3.12.11",
    "pip": "26.1",
    "r-base": "4.4.3",
    "r-ggplot2": "4.0.1",
    "r-rmarkdown": "2.31",
    "pandoc": "3.9",
}


def build(channel: Path) -> None:
    """Write the channel, with an index."""
    from rattler.index import index_fs

    (channel / "linux-64").mkdir(parents=True)
    (channel / "noarch").mkdir()
    host = {"python": sys.executable, "rscript": shutil.which("Rscript")}
    _pack(channel, "python", {name: PYTHON.format(**host) for name in ("bin/python", "bin/python3")})
    _pack(channel, "pip", {})
    _pack(channel, "r-base", {"bin/Rscript": RSCRIPT.format(**host)})
    for name in ("git", "pandoc"):
        _pack(channel, name, {f"bin/{name}": PROGRAM.format(name=name, program=shutil.which(name))})
    for name in ("pyyaml", "jsonschema", "openpyxl"):
        _pack(channel, name, python_links(name), importlib.metadata.version(name))
    names = ["ggplot2", "rmarkdown", "knitr", "tinytex", "jsonlite", "svglite"]
    names += ["bookdown", "dplyr", "tidyr", "glue", "stringr", "scales"]
    for name, links in _r_links(names).items():
        _pack(channel, f"r-{name.lower()}", links)
    asyncio.run(index_fs(channel))


def _pack(channel: Path, name: str, files: dict[str, str], version: str | None = None) -> None:
    """A package of scripts (their text) and of links (``-> target``)."""
    version = version or VERSIONS.get(name, "1.0")
    index = {"name": name, "version": version, "build": "0", "build_number": 0, "depends": [], "subdir": "linux-64"}
    paths = [
        {"_path": path, "path_type": "softlink" if text.startswith("-> ") else "hardlink"}
        for path, text in files.items()
    ]
    told = {
        "info/index.json": json.dumps(index),
        "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}),
        "info/files": "".join(f"{path}\n" for path in files),
    }
    with tarfile.open(channel / "linux-64" / f"{name}-{version}-0.tar.bz2", "w:bz2") as archive:
        for path, text in {**told, **files}.items():
            entry = tarfile.TarInfo(path)
            if text.startswith("-> "):
                entry.type, entry.linkname = tarfile.SYMTYPE, text.removeprefix("-> ")
                archive.addfile(entry)
            else:
                entry.size, entry.mode = len(text.encode()), 0o755 if path.startswith("bin/") else 0o644
                archive.addfile(entry, io.BytesIO(text.encode()))


def python_links(name: str, seen: set[str] | None = None) -> dict[str, str]:
    """Links to a Python package of the host and to all that it needs, below site/."""
    seen = set() if seen is None else seen
    if name.lower() in seen:
        return {}
    seen.add(name.lower())
    found = {}
    try:
        there = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return {}
    for file in there.files or []:
        top = file.parts[0]
        if top not in ("..", "__pycache__"):
            found[f"site/{top}"] = f"-> {there.locate_file(top)}"
    for needed in there.requires or []:
        if "extra ==" not in needed:
            found |= python_links(re.split(r"[^\w.-]", needed)[0], seen)
    return found


def _r_links(names: list[str]) -> dict[str, dict[str, str]]:
    """Links to R packages of the host and to all that they need, below library/."""
    script = f"""
    names <- c({", ".join(f"'{name}'" for name in names)})
    all <- installed.packages()
    needed <- tools::package_dependencies(names, all, c("Depends", "Imports", "LinkingTo"), recursive = TRUE)
    of <- function(name) {{
      found <- intersect(c(name, needed[[name]]), rownames(all))
      as.list(setNames(file.path(all[found, "LibPath"], found), found))
    }}
    cat(jsonlite::toJSON(sapply(names, of, simplify = FALSE), auto_unbox = TRUE))
    """
    text = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=True).stdout
    # What belongs to R itself is in its own library.
    return {
        name: {
            f"library/{one}": f"-> {path}" for one, path in links.items() if not path.startswith("/usr/lib/R/library")
        }
        for name, links in json.loads(text).items()
    }


def install(folder: Path) -> Path:
    """A channel and a `conda` in a folder, whose `bin` is to be put on the path; gives that."""
    build(folder / "channel")
    (folder / "bin").mkdir()
    conda = folder / "bin/conda"
    root = Path(__file__).resolve().parent.parent
    conda.write_text(f'#!/bin/sh\nPYTHONPATH={root}{os.pathsep}{_rattler()} exec {sys.executable} -m conda "$@"\n')
    conda.chmod(0o755)
    (folder / "bin/activate").write_text('export CONDA_PREFIX="$1" PATH="$1/bin:$PATH"\n')
    return folder / "bin"


def _rattler() -> str:
    import rattler

    return str(Path(rattler.__file__).parent.parent)
