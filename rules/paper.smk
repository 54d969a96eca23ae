# The paper, from the tables: the same text as PDF and as a web page.


rule paper:
    input:
        experiment.tables,
        ANALYSIS,
        TEXTS,
        folders,
        sums="results/SHA256SUMS",
    output:
        report("paper/report.{ending}", category="Papers"),
    log:
        "results/logs/report.{ending}.log",
    wildcard_constraints:
        ending="pdf|html",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        plan=lambda paper: experiment.digest,
    # What was edited by hand since it was made is refused.
    shell:
        "(sha256sum --check --quiet {input.sums} && Rscript analysis/report.R {output}) 2>&1 | tee {log}"
