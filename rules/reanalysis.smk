# The published raw results of the original paper, read again: tables, figures, and a paper of their own.


rule reanalysis_tables:
    output:
        experiment.files("reanalysis/tables"),
        note="results/made/reanalysis/tables.json",
    log:
        "results/logs/reanalysis-tables.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        raw=lambda _: experiment.published_raw(),
        state=lambda _: experiment.published_state(),
        made_by=experiment.made_by("reanalysis/tables"),
        again=experiment.again("reanalysis/tables"),
    shell:
        "python -m strata make reanalysis/tables {params.again} --"
        " Rscript analysis/reanalyse.R --raw {params.raw:q} --out results/reanalysis 2>&1 | tee {log}"


rule reanalysis_figures:
    input:
        tables=experiment.reads("reanalysis/figures"),
        notes=experiment.notes("reanalysis/figures"),
    output:
        experiment.files("reanalysis/figures"),
        note="results/made/reanalysis/figures.json",
    log:
        "results/logs/reanalysis-figures.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        made_by=experiment.made_by("reanalysis/figures"),
        again=experiment.again("reanalysis/figures"),
    shell:
        "python -m strata make reanalysis/figures {params.again} --"
        " Rscript analysis/reanalysis_figures.R --differences {input.tables} --out results/reanalysis 2>&1 | tee {log}"


rule reanalysis_paper:
    input:
        tables=experiment.reads("paper/reanalysis.pdf"),
        notes=experiment.notes("paper/reanalysis.pdf"),
    output:
        paper=report("paper/reanalysis.pdf", **in_report.paper("reanalysis")),
        note="results/made/paper/reanalysis.pdf.json",
    log:
        "results/logs/reanalysis-paper.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        # Nothing is measured for it: what was tested here stands beside it where it is.
        claims=lambda _: experiment.tested_claims(),
        tested=lambda _: experiment.tested_state(),
        made_by=experiment.made_by("paper/reanalysis.pdf"),
        again=experiment.again("paper/reanalysis.pdf"),
    shell:
        "python -m strata make paper/reanalysis.pdf {params.again} --"
        " Rscript analysis/reanalysis_paper.R --tables results/reanalysis --out {output.paper} {params.claims}"
        " 2>&1 | tee {log}"
