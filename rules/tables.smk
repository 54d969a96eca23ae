# From raw logs to tables: all of them from all logs, which takes seconds.
#
# What is made of logs is made as a draft, and put in its place once that is whole.  So a failure leaves what is there
# as it was.  And it stays a failure: of a job that failed Snakemake removes the output and remembers all input as read;
# the rule that puts a draft in its place has the same input, and it never fails for what is in there.


rule measured:
    # All cells, the decisions on the way, and the checksums of what there is.  Of a job that waits for a checkpoint
    # Snakemake does not see that its parameters changed: a plan with more blocks would leave tables as they are.
    input:
        lambda measured: told(experiment.measured, checkpoints),
        folders,
    output:
        # Whoever makes tables asks for all cells again.
        waited=temp("results/tmp/measured"),
        sums="results/raw.sha256",
    log:
        "results/logs/measured.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    shell:
        "(find results/raw -type f -print0 | sort -z | xargs -0 -r sha256sum >{output.sums}"
        " && touch {output.waited}) 2>{log}"


TABLES_OF = [*experiment.image(), *PARSERS, *ANALYSIS, "results/raw.sha256"]


rule draft_tables:
    input:
        TABLES_OF,
        measured="results/tmp/measured",
    output:
        temp(directory("results/tmp/tables")),
    log:
        "results/logs/tables.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        partial="--partial" if experiment.partial else "",
    # Where they fail, the next run asks for the cells again, which may be others by then.
    shell:
        "rm {input.measured} && python3 -m strata tables {params.partial} --to {output} 2>&1 | tee {log}"


rule tables:
    input:
        TABLES_OF,
        draft="results/tmp/tables",
    output:
        tables=report(experiment.tables, category="Tables"),
        sums="results/SHA256SUMS",
    log:
        "results/logs/tables-placed.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        plan=lambda tables: experiment.digest,
        partial=experiment.partial,
    # As other names of the same files, which are on the disk by then.
    shell:
        "(cp --recursive --link {input.draft}/* results && sync results results/tidy results/laps) 2>{log}"
