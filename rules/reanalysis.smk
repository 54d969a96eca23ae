# The published raw results of the original paper, analysed again: tables, figures and a paper of
# their own, by way of a draft as in tables.smk.
REANALYSIS_OF = [*ANALYSIS, *TEXTS, *list_code("strata/reanalysis/*.py")]


rule draft_reanalysis:
    input:
        REANALYSIS_OF,
    output:
        temp(directory("results/tmp/reanalysis")),
    log:
        "results/logs/reanalysis.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        raw=lambda _: call_or_raise(experiment.get_published_results),
    shell:
        "python3 -m strata reanalyse --to {output}/tables --paper {output}/reanalysis.pdf"
        " -- {params.raw[0]:q} 2>&1 | tee {log}"


rule reanalysis:
    input:
        REANALYSIS_OF,
        draft="results/tmp/reanalysis",
    output:
        tables=directory("results/reanalysis"),
        paper=report("paper/reanalysis.pdf", category="Papers"),
    log:
        "results/logs/reanalysis-placed.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        raw=lambda _: call_or_raise(experiment.get_published_results),
    shell:
        "(cp --recursive {input.draft}/tables {output.tables}"
        " && cp {input.draft}/reanalysis.pdf {output.paper}"
        " && sync {output.paper} paper) 2>{log}"
