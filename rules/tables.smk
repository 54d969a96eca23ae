# From raw logs to tables: all tables from all logs, which takes seconds.
#
# A product of logs is made as a draft, and put in its place once it is whole: a failure leaves the
# old product as it was.  It also stays a failure.  When a job fails, Snakemake removes its output,
# and takes its input as read.  The rule that puts the draft in its place has the same input, and
# does not fail for its content, so that it stays due, and the draft with it.


TABLES_OF = [*experiment.list_image_files(), *PARSERS, *ANALYSIS]


rule draft_tables:
    # The checksums of all logs and records are newer than the tables once a log is; a failure
    # removes them, so that the tables stay due.
    input:
        lambda draft_tables: call(experiment.list_measured, checkpoints),
        folders,
        TABLES_OF,
    output:
        sums="results/raw.sha256",
        draft=temp(directory("results/tmp/tables")),
    log:
        "results/logs/tables.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        partial="--partial" if experiment.partial else "",
    shell:
        "(find results/raw -type f -print0 | sort -z | xargs -0 -r sha256sum >{output.sums}"
        " && python3 -m strata tables {params.partial} --to {output.draft}) 2>&1 | tee {log}"


rule tables:
    input:
        TABLES_OF,
        "results/raw.sha256",
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
    # The tables get second names of the draft's files, which the disk already holds.
    shell:
        "(cp --recursive --link {input.draft}/* results && sync results results/tidy) 2>{log}"
