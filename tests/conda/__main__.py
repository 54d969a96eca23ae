"""What Snakemake asks of conda, answered by rattler's solver from the channel that CONDA_CHANNEL_ALIAS names."""

import argparse
import asyncio
import importlib.metadata
import json
import os
import sys
from pathlib import Path

import yaml

from conda.channel import python_links


async def create(page: dict, prefix: Path) -> None:
    """Solve and install an environment.  What `pip` is to install must be on the host, in that version."""
    import rattler

    alias = os.environ["CONDA_CHANNEL_ALIAS"]
    wanted = page["dependencies"]
    names = [entry for entry in wanted if isinstance(entry, str)]
    if page["channels"] != ["conda-forge"]:
        sys.exit(f"conda: the channels are {page['channels']}")
    # No space: `r-base =4.4` is a specification too.
    records = await rattler.solve(
        [rattler.Channel(alias)], [rattler.MatchSpec(name) for name in names], platforms=["linux-64", "noarch"]
    )
    await rattler.install(records, prefix, cache_dir=prefix.parent / "packages", show_progress=False)
    for entry in wanted:
        for requirement in entry["pip"] if isinstance(entry, dict) else []:
            name, _, version = requirement.replace(" ", "").partition("==")
            if importlib.metadata.version(name) != version:
                sys.exit(f"conda: pip: {name} {version} is not there")
            for link, target in python_links(name).items():
                (prefix / link).parent.mkdir(exist_ok=True)
                if not (prefix / link).exists():
                    (prefix / link).symlink_to(target.removeprefix("-> "))


def main(words: list[str]) -> None:
    if words == ["--version"]:
        print("conda 26.7.1")
    elif words[:1] == ["info"]:
        place = str(Path(os.environ["CONDA_ROOT"]))
        print(json.dumps({"conda_prefix": place, "root_prefix": place, "platform": "linux-64"}))
    elif words[:1] == ["config"]:
        print(json.dumps({"get": {"channel_priority": "strict"}}))
    elif words[:2] == ["env", "create"]:
        parser = argparse.ArgumentParser()
        parser.add_argument("--file", type=Path)
        parser.add_argument("--prefix", type=Path)
        options, _ = parser.parse_known_args(words[2:])
        asyncio.run(create(yaml.safe_load(options.file.read_text()), options.prefix))
    elif words[:1] != ["clean"]:
        sys.exit(f"conda: {words} is not known to the tests' conda")


if __name__ == "__main__":
    main(sys.argv[1:])
    sys.stdout.flush()
    # The solver's threads may crash while the interpreter is taken apart.
    os._exit(0)
