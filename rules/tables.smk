# From raw logs to tables: all of them from all logs, which takes seconds.


rule measured:
    # All cells, and the decisions on the way.  Of a job that waits for a checkpoint Snakemake does not see that its
    # parameters changed: a plan with more blocks would leave tables as they are.
    input:
        lambda measured: told(experiment.measured, checkpoints),
        folders,
    output:
        temp("results/tmp/measured"),
    log:
        "results/logs/measured.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    shell:
        "touch {output} 2>{log}"


rule tables:
    input:
        experiment.image(),
        PARSERS,
        ANALYSIS,
        folders,
        measured="results/tmp/measured",
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
    # Where they fail, the next run asks for the cells again.
    shell:
        "(rm {input.measured} && python3 -m strata tidy {params.partial} && Rscript analysis/tables.R results"
        " && sha256sum {output.tables} >{output.sums}) 2>&1 | tee {log}"
