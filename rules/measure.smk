# One rule for every cell: the plan gives the order, the testbed is there once.
# Plan and image are made before the first job (experiment.begin): if they were jobs that cells
# depend on, a changed plan would hide from Snakemake which cells' parameters have changed.


rule cell:
    output:
        log="results/raw/{environment}/{workload}/{repetition}.log",
        record="results/raw/{environment}/{workload}/{repetition}.json",
    log:
        "results/logs/cells/{environment}/{workload}/{repetition}.log",
    priority: experiment.priority
    conda:
        "../envs/strata.yaml"
    resources:
        testbed=1,
    params:
        fingerprint=experiment.fingerprint,
    shell:
        "python -m strata cell {wildcards.environment} {wildcards.workload} {wildcards.repetition}"


rule cells:
    # A target: every cell, and nothing made of them.
    input:
        [experiment.cells(workload) for workload in experiment.workloads],
