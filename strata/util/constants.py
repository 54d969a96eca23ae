"""What several parts of Strata have to know, as data in schemas/constants/."""

import functools
import json
import os

from strata.util import paths
from strata.util.data_types import Fields


@functools.cache
def read(name: str) -> Fields:
    """The data of one theme.  A cell that goes well asks for none."""
    with open(
        os.path.join(paths.PROJECT, "schemas/constants", f"{name}.json"), encoding="utf-8"
    ) as file:
        found: Fields = json.load(file)
    return found


def result(name: str, **values: object) -> str:
    """The path, below the project, of a file of the results (schemas/constants/results.json)."""
    return f"results/{read('results')[name].format(**values)}"
