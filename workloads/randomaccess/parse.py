"""RandomAccess: the rate of updates over all passes."""

from kit.checks import (
    number,
    require,
    require_close,
    require_equal,
    require_numbered,
    require_parameters,
)
from kit.logs import Object, Value, read, seconds_worked, value


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The rate, in GUPS."""
    log = read(lines, "( slice)? tool first( pass)+ passes")
    [header], [first], [total] = (log.objects[name] for name in ("tool", "first", "passes"))
    passes = log.objects["pass"]
    require_equal("the program", header["tool"], "strata-randomaccess")
    require_parameters(header, parameters, "threads")
    words, updates = 2 ** parameters["log2"], number(header, "updates_per_pass")
    require_equal("table_bytes", header["table_bytes"], 8 * words)
    require_equal("updates_per_pass", updates, int(words * parameters["updates_per_word"]))
    require_numbered(passes, "pass")
    require_equal("the number of passes", number(total, "passes"), len(passes))
    require_parameters(total, parameters, "passes")
    right = total["verified"] is True and number(total, "wrong_share", zero=True) <= number(
        total, "limit"
    )
    require(right, "the table was not verified")
    seconds, at_first = number(total, "seconds"), number(first, "seconds")
    done, done_first = number(total, "gups_of_all") * seconds, number(first, "first") * at_first
    require_close("rate × time", done, 1e-9 * updates * len(passes))
    require_close("rate × time of the first pass", done_first, 1e-9 * updates)
    rate, rate_first = (
        done / seconds_worked(log, passes, seconds),
        done_first / seconds_worked(log, [first], at_first),
    )
    return [value("gups", "GUPS", rate), value("first", "GUPS", rate_first)]
