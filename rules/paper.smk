# The paper, from the tables: the same text as PDF and as a web page.


rule figures:
    input:
        experiment.tables(),
        ANALYSIS,
        sums="results/SHA256SUMS",
    output:
        report(
            directory("results/figures"), patterns=["{figure}.svg"], category="Figures"
        ),
    log:
        "results/logs/figures.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    # What was edited by hand since it was made is refused.
    shell:
        "(sha256sum --check --quiet {input.sums} && Rscript analysis/figures.R --plan results/plan.json)"
        " 2>&1 | tee {log}"


rule paper:
    input:
        experiment.tables(),
        experiment.image(),
        ANALYSIS,
        TEXTS,
        FOLDERS,
        figures="results/figures",
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
        plan=lambda paper: experiment.digest(),
        partial="--partial" if experiment.partial else "",
    shell:
        "(sha256sum --check --quiet {input.sums} && Rscript analysis/report.R --plan results/plan.json"
        " --out {output} {params.partial}) 2>&1 | tee {log}"
