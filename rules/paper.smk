# The paper, from the tables and figures: the same text as PDF and as a web page.

results_of_the_paper = [
    "results/comparisons.csv",
    "results/claims.csv",
    "results/footprint.csv",
    *expand(
        "results/{kind}/{workload}.csv",
        kind=["tidy", "summary"],
        workload=experiment.measured(),
    ),
    *expand(
        "results/figures/{figure}.{kind}",
        figure=[*experiment.drawn(), "order", "ratios"],
        kind=["pdf", "png"],
    ),
]


rule report:
    input:
        results_of_the_paper,
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
        results_of_the_paper,
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
