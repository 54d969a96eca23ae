from snakemake.utils import min_version

# The first version in which a priority may be a function.
min_version("9.17")


include: "rules/common.smk"
include: "rules/measure.smk"
include: "rules/tables.smk"
include: "rules/paper.smk"
include: "rules/archive.smk"
include: "rules/reanalysis.smk"


# The target of a plain `snakemake`.  Snakemake ignores `default_target` in included files.
rule all:
    default_target: True
    input:
        "paper/report.pdf",
        "paper/report.html",


# All cells, without tables and papers.
rule cells:
    input:
        list_logs,


# A workflow that imports this one has targets that are unknown here.
if os.path.samefile(workflow.main_snakefile, f"{PROJECT}/Snakefile"):
    call_or_exit(
        check_targets, sys.argv[1:], workflow.rules, experiment.check_cell_is_planned
    )
