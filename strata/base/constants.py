"""What several parts of Strata have to know, as data in schemas/constants/."""

import functools
import json
import os

from strata.base import places

FOLDER = os.path.join(places.PROJECT, "schemas/constants")


@functools.cache
def read(name: str) -> dict:
    """The data of one theme.  A cell that goes well asks for none."""
    with open(os.path.join(FOLDER, f"{name}.json"), encoding="utf-8") as file:
        return json.load(file)


def result(name: str, **values: object) -> str:
    """The path, below the project, of a file of the results (schemas/constants/results.json)."""
    return "results/" + read("results")[name].format(**values)
