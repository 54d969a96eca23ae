# The paper, from the tables and figures.


rule report:
    input:
        summaries=expand(
            "results/summary/{workload}.csv", workload=experiment.measured()
        ),
        figures=expand(
            "results/figures/{figure}.pdf", figure=[*experiment.measured(), "order"]
        ),
    output:
        "paper/report.pdf",
    log:
        "results/logs/report.log",
    conda:
        "../envs/analysis.yaml"
    params:
        partial="--partial" if experiment.partial else "",
    shell:
        "Rscript analysis/report.R --plan results/plan.json --out {output} {params.partial}"
        " 2>&1 | tee {log}"
