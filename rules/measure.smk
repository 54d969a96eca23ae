# One rule for every cell: the plan gives the order, the testbed is there once.


rule cell:
    input:
        plan=ancient("results/plan.json"),
        image=ancient("results/image.json") if experiment.needs_image() else [],
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
