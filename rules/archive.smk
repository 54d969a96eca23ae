# One file with all that the paper rests on; `.venv/bin/snakemake --cores 1 archive` makes it.


rule archive:
    input:
        lambda _: experiment.everything(),
    output:
        "archive.zip",
    log:
        "results/logs/archive.log",
    localrule: True
    conda:
        "../envs/archive.yaml"
    params:
        image="--image" if experiment.settings["archive_image"] else "",
        # The source is part of it: it is made again when a file of it changes.
        source=lambda _: experiment.source_state(),
    shell:
        "python -m strata archive --out {output} {params.image} 2>&1 | tee {log}"
