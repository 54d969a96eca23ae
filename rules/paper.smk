# The paper, from the tables and figures: the same text as PDF and as a web page.

PAPER_INPUTS = {
    "summaries": expand(
        "results/summary/{workload}.csv", workload=experiment.measured()
    ),
    "comparisons": "results/comparisons.csv",
    "claims": "results/claims.csv",
    "figures": multiext(
        "results/figures/", *[
            f"{name}.{kind}"
            for name in [*experiment.measured(), "order", "ratios"]
            for kind in ("pdf", "png")
        ]
    ),
}


rule report:
    input:
        **PAPER_INPUTS,
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


rule web_page:
    input:
        **PAPER_INPUTS,
        tidy=expand("results/tidy/{workload}.csv", workload=experiment.measured()),
    output:
        "paper/report.html",
    log:
        "results/logs/web-page.log",
    conda:
        "../envs/analysis.yaml"
    params:
        partial="--partial" if experiment.partial else "",
    shell:
        "Rscript analysis/report.R --plan results/plan.json --out {output} {params.partial}"
        " 2>&1 | tee {log}"
