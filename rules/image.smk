# What will be measured, and the image it is measured in.


rule plan:
    output:
        plan="results/plan.json",
        order="results/plan.csv",
    log:
        "results/logs/plan.log",
    conda:
        "../envs/strata.yaml"
    params:
        config=lambda wildcards: OVERRIDES,
        plan=lambda wildcards: json.dumps(experiment.plan, sort_keys=True),
    shell:
        "python -m strata plan --config {params.config:q} 2>&1 | tee {log}"


rule image:
    output:
        image="results/image.json",
        manifest="results/image-manifest.json",
    log:
        "results/logs/image.log",
    conda:
        "../envs/strata.yaml"
    params:
        config=lambda wildcards: OVERRIDES,
        recipe=experiment.plan["image"]["recipe"],
    shell:
        "python -m strata image --config {params.config:q} 2>&1 | tee {log}"
