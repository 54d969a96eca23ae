# From raw logs to tables: all tables from all logs, which takes seconds.
#
# A product of logs is made as a draft, and put in its place once it is whole: a failure leaves the
# old product as it was.  It also stays a failure.  When a job fails, Snakemake removes its output,
# and takes its input as read.  The rule that puts the draft in its place has the same input, and
# does not fail for its content, so that it stays due, and the draft with it.


rule checksums:
    # Newer than the tables once a log or record is: the tables then stay due until they are made.
    input:
        list_measured_files,
        list_log_folders,
    output:
        "results/raw.sha256",
    log:
        "results/logs/checksums.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    shell:
        "find results/raw -type f -print0 | sort -z | xargs -0 -r sha256sum >{output} 2>{log}"


TABLES_OF = [*experiment.list_image_files(), *PARSERS, *ANALYSIS, "results/raw.sha256"]


rule draft_tables:
    # The logs are inputs here, too: one that is missing is measured for a job that is due, and not
    # for checksums that exist.
    input:
        TABLES_OF,
        list_measured_files,
        list_log_folders,
    output:
        temp(directory("results/tmp/tables")),
    log:
        "results/logs/tables.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        partial="--partial" if experiment.partial else "",
    shell:
        "python3 -m strata tables {params.partial} --to {output} 2>&1 | tee {log}"


rule tables:
    input:
        TABLES_OF,
        # Snakemake does not compare times for a job that waits for a decision, as the draft's does.
        list_log_folders,
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
        "(cp --recursive --link {input.draft}/* results"
        " && sync results results/tidy results/laps) 2>{log}"
