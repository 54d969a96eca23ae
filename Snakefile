from snakemake.utils import min_version

# The first with functions as priorities.
min_version("9.17")


include: "rules/common.smk"
include: "rules/measure.smk"
include: "rules/tables.smk"
include: "rules/paper.smk"
include: "rules/archive.smk"
include: "rules/reanalysis.smk"


# What a plain `snakemake` makes.  (In an included file Snakemake would not hear of it.)
rule all:
    default_target: True
    input:
        "paper/report.pdf",
        "paper/report.html",


# Every cell, and nothing made of them.
rule cells:
    input:
        lambda wildcards: logs(),


# Another workflow that imports this one has more targets.
if os.path.samefile(workflow.main_snakefile, f"{PROJECT}/Snakefile"):
    or_end(require_known, sys.argv[1:], workflow.rules)
