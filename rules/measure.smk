# One rule for every cell: the plan gives the order, the testbed is there once.
# Plan and image are made before the first job (experiment.begin): if they were jobs that cells
# depend on, a changed plan would hide from Snakemake which cells' parameters have changed.
# Where a paper is made again from an archive there is no such rule, so that nothing can be measured.


if not experiment.rebuilding:

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
            **experiment.job_options(),
            testbed=1,
        params:
            fingerprint=experiment.fingerprint,
        # A cell needs nothing but the standard library, and starts quicker without looking for more (-S).
        shell:
            "python -S -m strata cell {wildcards.environment} {wildcards.workload} {wildcards.repetition}"


if experiment.adaptive:

    checkpoint precision:
        # After this block: which workloads get how many further sets, or is it enough?
        input:
            logs=lambda precision: experiment.all_logs(int(precision.block)),
            before=lambda precision: experiment.decided_before(int(precision.block)),
        output:
            state="results/precision/{block}.json",
            note="results/made/precision/{block}.json",
        log:
            "results/logs/precision-{block}.log",
        wildcard_constraints:
            block=r"[1-9]\d*",
        localrule: True
        conda:
            "../envs/analysis.yaml"
        resources:
            testbed=1,
        params:
            made_by=experiment.made_by("precision/{block}"),
            again=experiment.again("precision/{block}"),
        shell:
            "python -m strata make precision/{wildcards.block} {params.again} --"
            " Rscript analysis/precision.R --plan results/plan.json --block {wildcards.block}"
            " --out {output.state} 2>&1 | tee {log}"
