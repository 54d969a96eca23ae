# From raw logs to tables and figures; the functions are in analysis/ and workloads/*/parse.R.

# What the figures draw beside what was measured.
published_values = [
    "published/ibm-table1.json",
    "published/ibm-figures.csv",
    "published/claims.json",
]
workload_of_figure = experiment.figures()


rule tidy:
    input:
        cells=lambda table: experiment.cells(table.workload, checkpoints),
        # A folder changes when a log in it is deleted: then that cell is measured again.
        folders=lambda table: experiment.folders(table.workload),
    output:
        "results/tidy/{workload}.csv",
    log:
        "results/logs/tidy-{workload}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        # In a partial paper, a run that is gone must not stay in the table.
        gone=lambda table: (
            experiment.cells(table.workload) if experiment.partial else []
        ),
        partial="--partial" if experiment.partial else "",
        # Labels, metrics and repetitions are the plan's: all that follows is made again when it changes.
        plan=lambda wildcards: experiment.digest,
    shell:
        "Rscript analysis/tidy.R --plan results/plan.json --workload {wildcards.workload}"
        " --out {output} {params.partial} 2>&1 | tee {log}"


rule summary:
    input:
        tidy="results/tidy/{workload}.csv",
    output:
        "results/summary/{workload}.csv",
    log:
        "results/logs/summary-{workload}.log",
    conda:
        "../envs/analysis.yaml"
    shell:
        "Rscript analysis/summary.R --plan results/plan.json --tidy {input.tidy} --out {output}"
        " 2>&1 | tee {log}"


rule comparisons:
    # All workloads together: their comparisons are one family.
    input:
        expand("results/summary/{workload}.csv", workload=experiment.measured()),
    output:
        "results/comparisons.csv",
    log:
        "results/logs/comparisons.log",
    conda:
        "../envs/analysis.yaml"
    shell:
        "Rscript analysis/comparisons.R --plan results/plan.json --out {output} {input} 2>&1 | tee {log}"


rule claims:
    # What was published, tested by what was measured; edited claims are tested again.
    input:
        published="published/claims.json",
        tidy=expand("results/tidy/{workload}.csv", workload=experiment.measured()),
    output:
        "results/claims.csv",
    log:
        "results/logs/claims.log",
    conda:
        "../envs/analysis.yaml"
    params:
        plan=lambda wildcards: experiment.digest,
    shell:
        "Rscript analysis/claims.R --plan results/plan.json --out {output} {input.tidy} 2>&1 | tee {log}"


rule footprint:
    # What it took to bring the environments up, from the records beside the tables' logs.
    input:
        expand("results/tidy/{workload}.csv", workload=experiment.measured()),
    output:
        "results/footprint.csv",
    log:
        "results/logs/footprint.log",
    conda:
        "../envs/analysis.yaml"
    params:
        plan=lambda wildcards: experiment.digest,
    shell:
        "Rscript analysis/footprint.R --plan results/plan.json --out {output} {input} 2>&1 | tee {log}"


rule figure:
    # A workload has one figure, or those that it declares.
    input:
        tidy=lambda drawn: f"results/tidy/{workload_of_figure[drawn.figure]}.csv",
        summary=lambda drawn: f"results/summary/{workload_of_figure[drawn.figure]}.csv",
        published=published_values,
    output:
        multiext("results/figures/{figure}", ".pdf", ".png", ".csv"),
    log:
        "results/logs/figure-{figure}.log",
    wildcard_constraints:
        figure="|".join(workload_of_figure),
    conda:
        "../envs/analysis.yaml"
    params:
        stem=lambda drawn: f"results/figures/{drawn.figure}",
        workload=lambda drawn: workload_of_figure[drawn.figure],
    shell:
        "Rscript analysis/figure.R --plan results/plan.json --summary {input.summary} --tidy {input.tidy}"
        " --figure {wildcards.figure} --workload {params.workload} --out {params.stem} 2>&1 | tee {log}"


rule order_figure:
    input:
        tidy=expand("results/tidy/{workload}.csv", workload=experiment.measured()),
    output:
        multiext("results/figures/order", ".pdf", ".png", ".csv"),
    log:
        "results/logs/figure-order.log",
    conda:
        "../envs/analysis.yaml"
    shell:
        "Rscript analysis/figure.R --order --plan results/plan.json --out results/figures/order"
        " {input.tidy} 2>&1 | tee {log}"


rule ratios_figure:
    input:
        published=published_values,
        summaries=expand(
            "results/summary/{workload}.csv", workload=experiment.measured()
        ),
    output:
        multiext("results/figures/ratios", ".pdf", ".png", ".csv"),
    log:
        "results/logs/figure-ratios.log",
    conda:
        "../envs/analysis.yaml"
    shell:
        "Rscript analysis/figure.R --ratios --plan results/plan.json --out results/figures/ratios"
        " {input.summaries} 2>&1 | tee {log}"
