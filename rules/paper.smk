# The paper, from the tables and figures: the same text as PDF and as a web page.


rule report:
    input:
        tables=experiment.reads("paper/report.pdf"),
        notes=experiment.notes("paper/report.pdf"),
    output:
        paper=report("paper/report.pdf", **in_report.paper("PDF")),
        note="results/made/paper/report.pdf.json",
    log:
        "results/logs/report.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        partial="--partial" if experiment.partial else "",
        made_by=experiment.made_by("paper/report.pdf"),
        again=experiment.again("paper/report.pdf"),
    shell:
        "python -m strata make paper/report.pdf {params.again} --"
        " Rscript analysis/report.R --plan results/plan.json --out {output.paper} {params.partial} 2>&1 | tee {log}"


rule web_page:
    input:
        tables=experiment.reads("paper/report.html"),
        notes=experiment.notes("paper/report.html"),
    output:
        paper=report("paper/report.html", **in_report.paper("web page")),
        note="results/made/paper/report.html.json",
    log:
        "results/logs/web-page.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        partial="--partial" if experiment.partial else "",
        made_by=experiment.made_by("paper/report.html"),
        again=experiment.again("paper/report.html"),
    shell:
        "python -m strata make paper/report.html {params.again} --"
        " Rscript analysis/report.R --plan results/plan.json --out {output.paper} {params.partial} 2>&1 | tee {log}"
