"""Parallel xz: the text that is compressed in a second, over all passes."""

from kit.checks import number, numbers, require, require_equal, require_numbered, require_parameters
from kit.logs import Object, Value, read, seconds_worked, value


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The throughput, in MB/s."""
    log = read(lines, " corpus round_trip( slice)? tool( pass)+ passes")
    [corpus], [header], [total] = log.objects["corpus"], log.objects["tool"], log.objects["passes"]
    passes = log.objects["pass"]
    require(header["tool"].startswith("xz "), "this is not a log of xz")
    blocks = [] if parameters.get("block_bytes") is None else ["block_bytes"]
    require_parameters(header, parameters, "threads", "level", *blocks)
    require(
        log.objects["round_trip"][0]["round_trip"] is True, "what was compressed does not come back"
    )
    # A corpus of the user's own is whatever its file holds.
    own = parameters.get("corpus") is not None
    require(own != (corpus["corpus"] == "gcide"), "the corpus is not the one that was asked for")
    if not own:
        require_parameters(corpus, parameters, "bytes")
    require_equal("bytes", number(header, "bytes"), number(corpus, "bytes"))
    require_numbered(passes, "pass")
    require_equal("the number of passes", number(total, "passes"), len(passes))
    compressed, microseconds = number(total, "bytes_of_all"), number(total, "microseconds_of_all")
    require_equal("bytes_of_all", compressed, header["bytes"] * len(passes))
    require_equal("microseconds_of_all", microseconds, sum(numbers(passes, "microseconds")))
    # The program's limit is in whole microseconds.
    enough = microseconds >= int(parameters["min_seconds"] * 1e6)
    require(enough, f"the passes took {microseconds:.0f} microseconds, less than was asked for")
    timed = [each | {"seconds": 1e-6 * each["microseconds"]} for each in passes]
    return [
        value(
            "throughput",
            "MB/s",
            1e-6 * compressed / seconds_worked(log, timed, 1e-6 * microseconds),
        )
    ]
