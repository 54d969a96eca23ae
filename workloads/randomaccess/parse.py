"""RandomAccess: the rate of updates over all passes."""

from kit.checks import number, require, require_asked, require_close, require_counted, require_equal
from kit.logs import Object, Value, read, value


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The rate, in GUPS."""
    log = read(lines, " tool first( pass)+ passes")
    [header], [first], [total] = (log.objects[name] for name in ("tool", "first", "passes"))
    passes = log.objects["pass"]
    require_equal("the program", header["tool"], "strata-randomaccess")
    require_asked(header, parameters, "threads")
    words, updates, seconds = 2 ** parameters["log2"], number(header, "updates_per_pass"), number(total, "seconds")
    require_equal("table_bytes", header["table_bytes"], 8 * words)
    require_equal("updates_per_pass", updates, int(words * parameters["updates_per_word"]))
    require_counted(passes, "pass")
    require_equal("the number of passes", number(total, "passes"), len(passes))
    right = first["verified"] is total["verified"] is True
    require(right and number(total, "wrong_share", zero=True) <= number(total, "limit"), "the table was not verified")
    require_close("rate × time", number(total, "gups_of_all") * seconds, 1e-9 * updates * len(passes))
    # Times are printed with nine digits.
    enough = seconds >= parameters["min_seconds"] * (1 - 1e-8)
    require(enough, f"the passes took {seconds} s, less than was asked for")
    return [value("gups", "GUPS", total["gups_of_all"]), value("first", "GUPS", number(first, "first"))]
