# From raw logs to tables: all of them from all logs, which takes seconds.


rule tables:
    input:
        lambda tables: told(experiment.measured, checkpoints),
        experiment.image(),
        PARSERS,
        ANALYSIS,
        FOLDERS,
    output:
        tables=report(experiment.tables, category="Tables"),
        sums="results/SHA256SUMS",
    log:
        "results/logs/tables.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        plan=lambda tables: experiment.digest,
        partial="--partial" if experiment.partial else "",
    shell:
        "(python3 -m strata tidy {params.partial} && Rscript analysis/tables.R results"
        " && sha256sum {output.tables} >{output.sums}) 2>&1 | tee {log}"
