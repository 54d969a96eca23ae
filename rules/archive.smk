# One file with all that the paper rests on.  It packs what is there, and measures nothing that nobody asked for.


rule archive:
    input:
        lambda archive: told(experiment.to_archive),
        code("strata/archive/*"),
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
        # The source is part of it.
        source=lambda archive: experiment.source(),
        # The one that runs this, which the environment of the rule does not hold.
        snakemake=SNAKEMAKE,
    shell:
        "python3 -m strata archive --out {output} {params.image} {params.allow:q}"
        " --snakemake {params.snakemake} 2>&1 | tee {log}"
