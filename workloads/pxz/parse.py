"""Parallel xz: the bytes of text that are compressed per second, over all passes."""

from kit.checks import (
    get_number,
    get_numbers,
    require,
    require_equal,
    require_numbered,
    require_parameters,
)
from kit.logs import Object, Value, build_value, compute_worked_seconds, read_objects


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the throughput, in MB/s of uncompressed text.

    prepare.sh prints the object of the corpus, and measure.sh all others.  workload.yaml declares
    the metric.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    log = read_objects(lines, " corpus round_trip tool( pass)+ passes")
    [corpus], [header], [total] = log.objects["corpus"], log.objects["tool"], log.objects["passes"]
    passes = log.objects["pass"]
    require(header["tool"].startswith("xz "), "this is not a log of xz")
    require_parameters(header, parameters, "threads", "level")
    if parameters.get("block_bytes") is not None:
        require_parameters(header, parameters, "block_bytes")
    [round_trip] = log.objects["round_trip"]
    require(round_trip["round_trip"] is True, "the decompressed text is not the corpus")
    # Without the parameter `corpus`, prepare.sh takes the text of the dictionary "gcide".
    has_corpus_parameter = parameters.get("corpus") is not None
    is_dictionary = corpus["corpus"] == "gcide"
    is_expected = is_dictionary != has_corpus_parameter
    require(is_expected, "the corpus is not that of the parameters")
    # Another corpus has the size of its file; only the dictionary is cut to the parameter `bytes`.
    if not has_corpus_parameter:
        require_parameters(corpus, parameters, "bytes")
    require_equal("bytes", get_number(header, "bytes"), get_number(corpus, "bytes"))
    require_numbered(passes, "pass")
    require_equal("the number of passes", get_number(total, "passes"), len(passes))
    text_bytes = get_number(total, "bytes_of_all")
    microseconds = get_number(total, "microseconds_of_all")
    require_equal("bytes_of_all", text_bytes, header["bytes"] * len(passes))
    require_equal("microseconds_of_all", microseconds, sum(get_numbers(passes, "microseconds")))
    # measure.sh compares with the limit in whole microseconds.
    is_long_enough = microseconds >= int(parameters["min_seconds"] * 1e6)
    require(is_long_enough, f"the passes took {microseconds:.0f} µs, less than the parameters say")
    runs = [line | {"seconds": 1e-6 * line["microseconds"]} for line in passes]
    seconds = compute_worked_seconds(log, runs, 1e-6 * microseconds)
    return [build_value("throughput", "MB/s", 1e-6 * text_bytes / seconds)]
