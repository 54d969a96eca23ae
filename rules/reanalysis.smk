# The published raw results of the original paper, read again: tables, figures, and a paper of their own.

REANALYSIS_TABLES = ["tidy", "series", "unreadable", "differences", "sources"]
REANALYSIS_FIGURES = [f"figure-{number}" for number in (3, *range(5, 14))]


rule reanalysis_tables:
    input:
        table="published/ibm-table1.json",
        figures="published/ibm-figures.csv",
    output:
        expand("results/reanalysis/{table}.csv", table=REANALYSIS_TABLES),
        "results/reanalysis/source.json",
    log:
        "results/logs/reanalysis-tables.log",
    conda:
        "../envs/analysis.yaml"
    params:
        raw=lambda _: experiment.published_raw(),
        state=lambda _: experiment.published_state(),
    shell:
        "Rscript analysis/reanalyse.R --raw {params.raw:q} --out results/reanalysis 2>&1 | tee {log}"


rule reanalysis_figures:
    input:
        "results/reanalysis/differences.csv",
    output:
        expand(
            "results/reanalysis/{figure}.{kind}",
            figure=REANALYSIS_FIGURES,
            kind=["pdf", "png", "csv"],
        ),
    log:
        "results/logs/reanalysis-figures.log",
    conda:
        "../envs/analysis.yaml"
    shell:
        "Rscript analysis/reanalysis_figures.R --differences {input} --out results/reanalysis"
        " 2>&1 | tee {log}"


rule reanalysis_paper:
    input:
        tables=expand("results/reanalysis/{table}.csv", table=REANALYSIS_TABLES),
        figures=expand("results/reanalysis/{figure}.pdf", figure=REANALYSIS_FIGURES),
        text="paper/reanalysis.Rmd",
        template="paper/template.tex",
        references="paper/references.bib",
    output:
        "paper/reanalysis.pdf",
    log:
        "results/logs/reanalysis-paper.log",
    conda:
        "../envs/analysis.yaml"
    shell:
        "Rscript analysis/reanalysis_paper.R --tables results/reanalysis --out {output} 2>&1 | tee {log}"
