# The paper, from the tables: the same text as PDF and as a web page, each by way of a draft as in
# tables.smk.
PAPER_OF = [*experiment.tables, "results/SHA256SUMS", *ANALYSIS, *TEXTS]


rule draft_paper:
    input:
        list_log_folders,
        PAPER_OF,
    output:
        temp("results/tmp/report.{ending}"),
    log:
        "results/logs/report.{ending}.log",
    wildcard_constraints:
        ending="pdf|html",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    shell:
        "python3 -m strata paper {output} 2>&1 | tee {log}"


rule paper:
    input:
        list_log_folders,
        PAPER_OF,
        draft="results/tmp/report.{ending}",
    output:
        report("paper/report.{ending}", category="Papers"),
    log:
        "results/logs/report-placed.{ending}.log",
    wildcard_constraints:
        ending="pdf|html",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        plan=lambda paper: experiment.digest,
    shell:
        "(cp {input.draft} {output} && sync {output} paper) 2>{log}"
