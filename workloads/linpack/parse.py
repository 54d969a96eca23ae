"""Linpack: the rate over all solutions of each size, and the rate of the matrix's first write."""

from kit.checks import (
    get_number,
    get_numbers,
    require,
    require_close,
    require_equal,
    require_numbered,
    require_parameters,
)
from kit.logs import Log, Object, Value, build_value, compute_worked_seconds, read_objects


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the rate of all trials of each matrix (GFLOPS), then that of its first write (GB/s).

    The factor `order` is the order of the matrix.  workload.yaml declares the metrics.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    # linpack.c prints for each size the first write, its trials, and the result of all trials.
    log = read_objects(lines, " tool( first( n)+)+")
    [header] = log.objects["tool"]
    require_equal("the program", header["tool"], "strata-linpack")
    require_parameters(header, parameters, "threads")
    values = []
    orders = []
    trials: list[Object] = []
    for line in log.objects["n"]:
        # Only the result of a size has the key "trials"; each trial has "trial".
        if "trials" not in line:
            trials.append(line)
            continue
        check_result_of_size(line, trials, parameters)
        orders.append(line["n"])
        gflops = correct_rate(line["gflops_of_all"], log, trials, line["seconds"])
        values.append(build_value("gflops", "GFLOPS", gflops, order=line["n"]))
        trials = []
    require_equal("the sizes", orders, parameters["sizes"])
    require(not trials, "the last size has no result")
    first_writes = log.objects["first"]
    orders_of_writes = [line["first"] for line in first_writes]
    require_equal("the sizes that were written first", orders_of_writes, parameters["sizes"])
    for line in first_writes:
        seconds = get_number(line, "seconds")
        # A square matrix of eight-byte numbers; "first" is its order.
        gigabytes = 8e-9 * get_number(line, "first") ** 2
        printed_rate = get_number(line, "gb_per_second")
        require_close("rate × time of the first write", printed_rate * seconds, gigabytes)
        rate = correct_rate(printed_rate, log, [line], seconds)
        values.append(build_value("first", "GB/s", rate, order=line["first"]))
    return values


def correct_rate(printed_rate: float, log: Log, runs: list[Object], seconds: float) -> float:
    """Return a printed rate without the time that its runs were frozen.

    printed_rate: work per second of all runs, in any unit, which the result keeps.
    log: the log, which has an object "slices" if runs were frozen.
    runs: the objects of the runs in the log, with `seconds` and `ended`
    (:func:`compute_worked_seconds`).
    seconds: duration of all runs, which includes the frozen time.
    """
    return printed_rate * seconds / compute_worked_seconds(log, runs, seconds)


def check_result_of_size(result: Object, trials: list[Object], parameters: Object) -> None:
    """Raise BrokenLogError unless the result of a size is verified, long enough, and consistent.

    result: the object that linpack.c prints of all trials of the size together.
    trials: the object of each trial.
    parameters: the cell's parameters.
    The count of floating-point operations: J. Dongarra, P. Luszczek, A. Petitet, The LINPACK
    benchmark: past, present and future, Concurrency and Computation 15, 2003.
    """
    # The order of the matrix is called n, as in the literature.
    n, count = get_number(result, "n"), get_number(result, "trials")
    seconds = get_number(result, "seconds")
    require_equal("the sizes of the trials", {trial["n"] for trial in trials}, {result["n"]})
    require_numbered(trials, "trial")
    require_equal("the number of trials", count, len(trials))
    worst = max(get_numbers(trials, "residual", allow_zero=True))
    is_verified = result["verified"] is True and worst < get_number(result, "limit")
    require(is_verified, f"the solution of size {n:.0f} was not verified")
    operations = count * (2 / 3 * n**3 + 2 * n**2)
    require_close("rate × time", get_number(result, "gflops_of_all") * seconds, 1e-9 * operations)
    # Times are printed with nine digits, so that rounding may take 5e-9 of one.
    is_long_enough = seconds >= parameters["min_seconds"] * (1 - 1e-8)
    is_enough = count >= parameters["min_trials"] and is_long_enough
    reason = f"size {n:.0f} ran {count:.0f} trials in {seconds} s, less than the parameters say"
    require(is_enough, reason)
