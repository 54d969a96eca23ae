# Cells, and what is decided before and between them.
#
# A cell has no input, not even an ancient() one: one that is missing and one whose parameters changed would then hide
# each other from Snakemake.  It is due when its log is missing or its fingerprint changes, and for nothing else: what it
# measures with (plan, image) is written when a run begins, or made by the first cell that needs it.
LOG = "results/raw/{environment}/{workload}/{repetition}.log"


rule cell:
    # update(): a good log stays until a better one is whole, and comes back where that fails.
    output:
        log=update(LOG),
        record=update(LOG.replace(".log", ".json")),
    log:
        "results/logs/cells/{environment}/{workload}/{repetition}.log",
    priority: lambda cell: experiment.priority(**cell)
    conda:
        "../envs/strata.yaml"
    resources:
        testbed=1,
    params:
        fingerprint=lambda cell: told(experiment.fingerprint, **cell),
    # A cell needs nothing but the standard library, and starts quicker without looking for more (-S).
    shell:
        "python3 -S -m strata cell {wildcards.environment} {wildcards.workload} {wildcards.repetition}"


checkpoint machine:
    # Whether KVM runs a guest here, tried once before the order is known: it depends on that.
    output:
        "results/machine.json",
    log:
        "results/logs/machine.log",
    priority: 10**9
    localrule: True
    conda:
        "../envs/strata.yaml"
    resources:
        testbed=1,
    params:
        circumstances=lambda machine: experiment.circumstances(),
    shell:
        "python3 -m strata machine 2>&1 | tee {log}"


checkpoint decide:
    # Which workloads get how many further blocks, or is it enough?  A decision stands, whatever becomes of code and logs.
    input:
        lambda decide: experiment.logs_before(decide.round),
    output:
        "results/precision/{round}.json",
    log:
        "results/logs/precision-{round}.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    resources:
        testbed=1,
    params:
        rests_on=lambda decide: experiment.rests_on,
    shell:
        "python3 -m strata decide {wildcards.round} 2>&1 | tee {log}"


rule image:
    # Of what the image is that was measured in: built now where no cell has built it.
    output:
        "results/image.json",
        "results/image-manifest.json",
    log:
        "results/logs/image.log",
    localrule: True
    conda:
        "../envs/strata.yaml"
    resources:
        testbed=1,
    params:
        recipe=experiment.plan["image"]["recipe"],
    shell:
        "python3 -m strata image --planned 2>&1 | tee {log}"
