"""RandomAccess: the rate of updates over all passes, and in the first pass."""

from kit.checks import (
    get_number,
    require,
    require_close,
    require_equal,
    require_numbered,
    require_parameters,
)
from kit.logs import Object, Value, build_value, compute_worked_seconds, read_objects


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the rate over all passes, and in the first pass, in GUPS: 1e9 updates per second.

    The log's object of all passes does not include the first one.  workload.yaml declares the
    metrics.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    # randomaccess.c prints the objects.
    log = read_objects(lines, " tool first( pass)+ passes")
    [header], [first], [total] = (log.objects[key] for key in ("tool", "first", "passes"))
    passes = log.objects["pass"]
    require_equal("the program", header["tool"], "strata-randomaccess")
    require_parameters(header, parameters, "threads")
    # Words have eight bytes.
    table_words = 2 ** parameters["log2"]
    updates = get_number(header, "updates_per_pass")
    require_equal("table_bytes", header["table_bytes"], 8 * table_words)
    require_equal("updates_per_pass", updates, int(table_words * parameters["updates_per_word"]))
    require_numbered(passes, "pass")
    require_equal("the number of passes", get_number(total, "passes"), len(passes))
    require_parameters(total, parameters, "passes")
    wrong_share = get_number(total, "wrong_share", allow_zero=True)
    is_verified = total["verified"] is True and wrong_share <= get_number(total, "limit")
    require(is_verified, "the table was not verified")
    seconds, first_seconds = get_number(total, "seconds"), get_number(first, "seconds")
    giga_updates = get_number(total, "gups_of_all") * seconds
    first_giga_updates = get_number(first, "first") * first_seconds
    require_close("rate × time", giga_updates, 1e-9 * updates * len(passes))
    require_close("rate × time of the first pass", first_giga_updates, 1e-9 * updates)
    rate = giga_updates / compute_worked_seconds(log, passes, seconds)
    first_rate = first_giga_updates / compute_worked_seconds(log, [first], first_seconds)
    return [build_value("gups", "GUPS", rate), build_value("first", "GUPS", first_rate)]
