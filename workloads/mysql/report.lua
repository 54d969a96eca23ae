-- sysbench's own OLTP transactions, of the kind in the variable TRANSACTIONS, with its report as one JSON object.
require("oltp_" .. os.getenv("TRANSACTIONS"))

function sysbench.hooks.report_cumulative(found)
    print(string.format(
        '{"sysbench": "%s", "threads": %d, "seed": %d, "transactions": %d, "read": %d, "write": %d, "other": %d, ' ..
        '"ignored": %d, "reconnects": %d, "seconds": %.6f, ' ..
        '"mean_ms": %.6f, "p95_ms": %.6f, "max_ms": %.6f, "sum_ms": %.6f}',
        sysbench.version_string:match("[%d.]+"), sysbench.opt.threads, sysbench.opt.rand_seed,
        found.events, found.reads, found.writes, found.other, found.errors, found.reconnects, found.time_total,
        1e3 * found.latency_avg, 1e3 * found.latency_pct, 1e3 * found.latency_max, 1e3 * found.latency_sum))
end
