# What will be measured, and the image it is measured in.


rule plan:
    output:
        plan="results/plan.json",
        order="results/plan.csv",
    log:
        "results/logs/plan.log",
    params:
        config=lambda wildcards: OVERRIDES,
        plan=lambda wildcards: json.dumps(experiment.plan, sort_keys=True),
    shell:
        "{STRATA} plan --config {params.config:q} 2>&1 | tee {log}"


rule image:
    output:
        image="results/image.json",
        manifest="results/image-manifest.json",
    log:
        "results/logs/image.log",
    params:
        config=lambda wildcards: OVERRIDES,
        recipe=experiment.plan["image"]["recipe"],
    shell:
        "{STRATA} image --config {params.config:q} 2>&1 | tee {log}"
