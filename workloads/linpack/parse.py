"""Linpack: the rate over all solutions of each size, and that of the matrix' first write."""

from kit.checks import (
    number,
    numbers,
    require,
    require_close,
    require_equal,
    require_numbered,
    require_parameters,
)
from kit.logs import Log, Object, Value, read, seconds_worked, value


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The rates, in GFLOPS, and those of the first write, in GB/s, by `order` of the matrix."""
    log = read(lines, "( slice)? tool( first( n)+)+")
    header = log.objects["tool"][0]
    require_equal("the program", header["tool"], "strata-linpack")
    require_parameters(header, parameters, "threads")
    sizes: list[Object] = []
    trials: list[Object] = []
    rates: list[Value] = []
    for each in log.objects["n"]:
        trials.append(each)
        if "trials" in each:
            check_size(each, trials[:-1], parameters)
            rates.append(
                rate(
                    "gflops",
                    "GFLOPS",
                    each["gflops_of_all"],
                    log,
                    trials[:-1],
                    each["seconds"],
                    each["n"],
                )
            )
            sizes.append(each)
            trials = []
    require_equal("the sizes", [each["n"] for each in sizes], parameters["sizes"])
    require(not trials, "the last size has no result")
    firsts = log.objects["first"]
    require_equal(
        "the sizes that were written first", [each["first"] for each in firsts], parameters["sizes"]
    )
    for each in firsts:
        seconds, written = number(each, "seconds"), 8e-9 * number(each, "first") ** 2
        require_close(
            "rate × time of the first write", number(each, "gb_per_second") * seconds, written
        )
        rates.append(
            rate("first", "GB/s", each["gb_per_second"], log, [each], seconds, each["first"])
        )
    return rates


def rate(
    metric: str, unit: str, printed: float, log: Log, runs: list[Object], seconds: float, order: int
) -> Value:
    """A rate of runs that took so many seconds, by the time for which they went on."""
    return value(metric, unit, printed * seconds / seconds_worked(log, runs, seconds), order=order)


def check_size(size: Object, trials: list[Object], parameters: Object) -> None:
    """Check the result of all trials of one size.

    The count of operations: J. Dongarra, P. Luszczek, A. Petitet, The LINPACK benchmark: past, present and future,
    Concurrency and Computation 15, 2003.
    """
    n, count, seconds = number(size, "n"), number(size, "trials"), number(size, "seconds")
    require_equal("the sizes of the trials", {each["n"] for each in trials}, {size["n"]})
    require_numbered(trials, "trial")
    require_equal("the number of trials", count, len(trials))
    right = size["verified"] is True and max(numbers(trials, "residual", zero=True)) < number(
        size, "limit"
    )
    require(right, f"the solution of size {n:.0f} was not verified")
    operations = count * (2 / 3 * n**3 + 2 * n**2)
    require_close("rate × time", number(size, "gflops_of_all") * seconds, 1e-9 * operations)
    # Times are printed with nine digits.
    enough = count >= parameters["min_trials"] and seconds >= parameters["min_seconds"] * (1 - 1e-8)
    require(enough, f"size {n:.0f} ran {count:.0f} trials in {seconds} s, less than was asked for")
