# Cells, and the decisions before and between them.
#
# A cell has no input, not even an ancient() one: a missing input and a changed parameter hide each
# other from Snakemake.  A cell is due if its log is missing or its fingerprint changes, and for no
# other reason.  The plan is written when a run begins; the first cell that needs an image builds
# it.
LOG = "results/raw/{environment}/{workload}/{repetition}.log"


rule cell:
    # update(): the old log stays until the new one is whole, and comes back if the job fails.
    output:
        log=update(LOG),
        record=update(LOG.replace(".log", ".json")),
    log:
        "results/logs/cells/{environment}/{workload}/{repetition}.log",
    priority: lambda cell: experiment.compute_cell_priority(**cell)
    conda:
        "../envs/strata.yaml"
    resources:
        testbed=1,
    params:
        fingerprint=lambda cell: call_or_raise(
            experiment.compute_cell_fingerprint, **cell
        ),
    # A cell needs only the standard library; without other packages (-S) Python starts faster.
    shell:
        "python3 -S -m strata cell"
        " {wildcards.environment} {wildcards.workload} {wildcards.repetition}"


checkpoint machine:
    # Whether KVM runs a guest here.  The order of measurement depends on it, so it is tried before.
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
        circumstances=lambda machine: experiment.format_kvm_circumstances(),
    shell:
        "python3 -m strata machine 2>&1 | tee {log}"


checkpoint decide:
    # How many blocks each workload gets next, if any.  A decision stands when code or logs change.
    input:
        lambda decide: experiment.list_decision_inputs(decide.round),
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
        rests_on=lambda decide: experiment.describe_basis(decide.round),
    shell:
        "python3 -m strata decide {wildcards.round} 2>&1 | tee {log}"


rule image:
    # The facts of the image where cells ran; it is built here if no cell has built it.
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
