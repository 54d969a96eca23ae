# From raw logs to tables and figures; the functions are in analysis/ and workloads/*/parse.R.


rule tidy:
    input:
        plan="results/plan.json",
        cells=lambda table: experiment.cells(table.workload),
    output:
        "results/tidy/{workload}.csv",
    log:
        "results/logs/tidy-{workload}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        # A run that was gone in between must not stay in the table.
        cells=lambda table: experiment.cells(table.workload),
        partial="--partial" if experiment.partial else "",
    shell:
        "Rscript analysis/tidy.R --plan {input.plan} --workload {wildcards.workload}"
        " --out {output} {params.partial} 2>&1 | tee {log}"


rule summary:
    input:
        plan="results/plan.json",
        tidy="results/tidy/{workload}.csv",
    output:
        "results/summary/{workload}.csv",
    log:
        "results/logs/summary-{workload}.log",
    conda:
        "../envs/analysis.yaml"
    shell:
        "Rscript analysis/summary.R --plan {input.plan} --tidy {input.tidy} --out {output}"
        " 2>&1 | tee {log}"


rule figure:
    input:
        plan="results/plan.json",
        tidy="results/tidy/{workload}.csv",
        summary="results/summary/{workload}.csv",
    output:
        multiext("results/figures/{workload}", ".pdf", ".png", ".csv"),
    log:
        "results/logs/figure-{workload}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        stem=lambda figure: f"results/figures/{figure.workload}",
    shell:
        "Rscript analysis/figure.R --plan {input.plan} --summary {input.summary} --tidy {input.tidy}"
        " --out {params.stem} 2>&1 | tee {log}"


rule order_figure:
    input:
        plan="results/plan.json",
        tidy=expand("results/tidy/{workload}.csv", workload=experiment.measured()),
    output:
        multiext("results/figures/order", ".pdf", ".png", ".csv"),
    log:
        "results/logs/figure-order.log",
    conda:
        "../envs/analysis.yaml"
    shell:
        "Rscript analysis/figure.R --order --plan {input.plan} --out results/figures/order"
        " {input.tidy} 2>&1 | tee {log}"
