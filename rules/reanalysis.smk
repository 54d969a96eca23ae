# The published raw results of the original paper, read again: tables, figures, and a paper of their own.


rule reanalysis:
    input:
        ANALYSIS,
        TEXTS,
    output:
        tables=directory("results/reanalysis"),
        paper=report("paper/reanalysis.pdf", category="Papers"),
    log:
        "results/logs/reanalysis.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        raw=lambda _: told(experiment.published_raw),
        state=lambda _: told(experiment.published_state),
        # What was tested here stands beside it where it is.
        claims=(
            "--claims results/claims.csv"
            if os.path.exists("results/claims.csv")
            else ""
        ),
    shell:
        "(Rscript analysis/reanalyse.R --raw {params.raw:q} --out {output.tables}"
        " && Rscript analysis/reanalysis_figures.R --differences {output.tables}/differences.csv --out {output.tables}"
        " && Rscript analysis/reanalysis_paper.R --tables {output.tables} --out {output.paper} {params.claims})"
        " 2>&1 | tee {log}"
