# The published raw results of the original paper, read again: tables, figures, and a paper of their own.


rule reanalysis:
    input:
        ANALYSIS,
        TEXTS,
        code("strata/reanalysis/*.py"),
    output:
        tables=directory("results/reanalysis"),
        paper=report("paper/reanalysis.pdf", category="Papers"),
    log:
        "results/logs/reanalysis.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        raw=lambda _: told(experiment.published_raw),
    shell:
        "(python3 -m strata reanalyse {params.raw[0]:q} --to {output.tables}"
        " && Rscript analysis/reanalyse.R {output.tables} {output.paper}) 2>&1 | tee {log}"
