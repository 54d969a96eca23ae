# The paper, from the tables and figures.


rule report:
    input:
        plan="results/plan.json",
        image="results/image.json",
        manifest="results/image-manifest.json",
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
        "Rscript analysis/report.R --plan {input.plan} --out {output} {params.partial}"
        " 2>&1 | tee {log}"
