-- sysbench's own OLTP transactions, whose kind is in the environment variable TRANSACTIONS
-- (read_only or read_write), with sysbench's report as one JSON object.
require("oltp_" .. os.getenv("TRANSACTIONS"))

-- Prints the report at the end of a run.
function sysbench.hooks.report_cumulative(report)
    print(string.format(
        '{"sysbench": "%s", "threads": %d, "seed": %d, "transactions": %d, ' ..
        '"read": %d, "write": %d, "other": %d, ' ..
        '"ignored": %d, "reconnects": %d, "seconds": %.6f, ' ..
        '"mean_ms": %.6f, "p95_ms": %.6f, "max_ms": %.6f, "sum_ms": %.6f}',
        sysbench.version_string:match("[%d.]+"), sysbench.opt.threads, sysbench.opt.rand_seed,
        report.events, report.reads, report.writes, report.other,
        report.errors, report.reconnects, report.time_total,
        1e3 * report.latency_avg, 1e3 * report.latency_pct,
        1e3 * report.latency_max, 1e3 * report.latency_sum))
end
