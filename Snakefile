from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

min_version("9.0")


include: "rules/common.smk"
include: "rules/measure.smk"
include: "rules/aggregate.smk"
include: "rules/paper.smk"
include: "rules/archive.smk"
include: "rules/reanalysis.smk"
