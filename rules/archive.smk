# One file with all that the paper rests on, and a light one with only its ratios and sessions.
# They pack what exists, and measure only on request.


rule archive:
    input:
        lambda archive: call_or_raise(experiment.list_archive_inputs),
        list_code("strata/archive/*"),
    output:
        "archive.zip",
    log:
        "results/logs/archive.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        image="--image" if experiment.settings["archive_image"] else "",
        allow=[f"--allow={text}" for text in experiment.settings["archive_allow"]],
        # The archive holds the source, which is not an input: it has thousands of files.
        source=lambda archive: experiment.hash_project_source(),
        # The conda environment of the rule does not hold Snakemake.
        snakemake=SNAKEMAKE,
    shell:
        "python3 -m strata archive --out {output} {params.image} {params.allow:q}"
        " --snakemake {params.snakemake} 2>&1 | tee {log}"


rule light:
    input:
        lambda light: call_or_raise(experiment.list_archive_inputs, papers=False),
        "results/SHA256SUMS",
        list_code("strata/archive/*"),
    output:
        "light.zip",
    log:
        "results/logs/light.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        allow=[f"--allow={text}" for text in experiment.settings["archive_allow"]],
        source=lambda light: experiment.hash_project_source(),
    shell:
        "python3 -m strata archive --light --out {output} {params.allow:q} 2>&1 | tee {log}"
