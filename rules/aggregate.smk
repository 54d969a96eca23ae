# From raw logs to tables and figures; the functions are in analysis/ and workloads/*/parse.R.
# What a rule reads besides its inputs stands in `made_by`, a digest of the plan, the code and the texts; `again`
# changes where something is not as it was made, or measured (strata/results/made.py).

workload_of_figure = experiment.figures()


rule tidy:
    # What its parser refuses is a failed cell, which is measured again once: no other may run meanwhile.
    input:
        cells=lambda table: experiment.cells(table.workload, checkpoints),
        # A folder changes when a log in it is deleted: then that cell is measured again.
        folders=lambda table: experiment.folders(table.workload),
    output:
        table=report("results/tidy/{workload}.csv", **in_report.table("tidy")),
        note="results/made/tidy/{workload}.json",
    log:
        "results/logs/tidy-{workload}.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    resources:
        testbed=1,
    params:
        partial="--partial" if experiment.partial else "",
        made_by=experiment.made_by("tidy/{workload}"),
        again=experiment.again("tidy/{workload}"),
    shell:
        "python -m strata make tidy/{wildcards.workload} {params.again} --"
        " Rscript analysis/tidy.R --plan results/plan.json --workload {wildcards.workload}"
        " --out {output.table} {params.partial} 2>&1 | tee {log}"


rule summary:
    input:
        tables=experiment.reads("summary/{workload}"),
        notes=experiment.notes("summary/{workload}"),
    output:
        table=report("results/summary/{workload}.csv", **in_report.table("summary")),
        note="results/made/summary/{workload}.json",
    log:
        "results/logs/summary-{workload}.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        made_by=experiment.made_by("summary/{workload}"),
        again=experiment.again("summary/{workload}"),
    shell:
        "python -m strata make summary/{wildcards.workload} {params.again} --"
        " Rscript analysis/summary.R --plan results/plan.json --tidy {input.tables} --out {output.table} 2>&1 | tee {log}"


rule comparisons:
    # All workloads together: their comparisons are one family.
    input:
        tables=experiment.reads("comparisons"),
        notes=experiment.notes("comparisons"),
    output:
        table=report("results/comparisons.csv", **in_report.table("comparisons")),
        note="results/made/comparisons.json",
    log:
        "results/logs/comparisons.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        made_by=experiment.made_by("comparisons"),
        again=experiment.again("comparisons"),
    shell:
        "python -m strata make comparisons {params.again} --"
        " Rscript analysis/comparisons.R --plan results/plan.json --out {output.table} {input.tables} 2>&1 | tee {log}"


rule claims:
    # What was published, tested by what was measured.
    input:
        tables=experiment.reads("claims"),
        notes=experiment.notes("claims"),
    output:
        table=report("results/claims.csv", **in_report.table("claims")),
        note="results/made/claims.json",
    log:
        "results/logs/claims.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        made_by=experiment.made_by("claims"),
        again=experiment.again("claims"),
    shell:
        "python -m strata make claims {params.again} --"
        " Rscript analysis/claims.R --plan results/plan.json --out {output.table} {input.tables} 2>&1 | tee {log}"


rule footprint:
    # What it took to bring the environments up, from the records beside the tables' logs.
    input:
        tables=experiment.reads("footprint"),
        notes=experiment.notes("footprint"),
    output:
        table=report("results/footprint.csv", **in_report.table("footprint")),
        note="results/made/footprint.json",
    log:
        "results/logs/footprint.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        made_by=experiment.made_by("footprint"),
        again=experiment.again("footprint"),
    shell:
        "python -m strata make footprint {params.again} --"
        " Rscript analysis/footprint.R --plan results/plan.json --out {output.table} {input.tables} 2>&1 | tee {log}"


rule sets:
    # How the machine moved from set to set, what pairing gains, and the ratios without what was disturbed.
    input:
        tables=experiment.reads("sets"),
        notes=experiment.notes("sets"),
    output:
        table=report("results/sets.csv", **in_report.table("sets")),
        note="results/made/sets.json",
    log:
        "results/logs/sets.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        made_by=experiment.made_by("sets"),
        again=experiment.again("sets"),
    shell:
        "python -m strata make sets {params.again} --"
        " Rscript analysis/sets.R --plan results/plan.json --out {output.table} {input.tables} 2>&1 | tee {log}"


rule choices:
    # Pairs of environments that differ in one choice alone.
    input:
        tables=experiment.reads("choices"),
        notes=experiment.notes("choices"),
    output:
        table=report("results/choices.csv", **in_report.table("choices")),
        note="results/made/choices.json",
    log:
        "results/logs/choices.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        made_by=experiment.made_by("choices"),
        again=experiment.again("choices"),
    shell:
        "python -m strata make choices {params.again} --"
        " Rscript analysis/choices.R --plan results/plan.json --out {output.table} {input.tables} 2>&1 | tee {log}"


rule nodes:
    # What nodes differ by, where cells were measured on several; nobody else asks for it.
    input:
        tables=experiment.reads("nodes"),
        notes=experiment.notes("nodes"),
    output:
        table=report("results/nodes.csv", **in_report.table("nodes")),
        note="results/made/nodes.json",
    log:
        "results/logs/nodes.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        made_by=experiment.made_by("nodes"),
        again=experiment.again("nodes"),
    shell:
        "python -m strata make nodes {params.again} --"
        " Rscript analysis/nodes.R --plan results/plan.json --out {output.table} {input.tables} 2>&1 | tee {log}"


rule figure:
    # A workload has one figure, or those that it declares.
    input:
        tables=experiment.reads("figures/{figure}"),
        notes=experiment.notes("figures/{figure}"),
    output:
        multiext("results/figures/{figure}", ".pdf", ".png"),
        report("results/figures/{figure}.svg", **in_report.figure("drawing")),
        report("results/figures/{figure}.csv", **in_report.figure("numbers")),
        note="results/made/figures/{figure}.json",
    log:
        "results/logs/figure-{figure}.log",
    wildcard_constraints:
        figure="|".join(workload_of_figure),
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        workload=lambda drawn: workload_of_figure[drawn.figure],
        made_by=experiment.made_by("figures/{figure}"),
        again=experiment.again("figures/{figure}"),
    shell:
        "python -m strata make figures/{wildcards.figure} {params.again} --"
        " Rscript analysis/figure.R --plan results/plan.json --tidy {input.tables[0]} --summary {input.tables[1]}"
        " --figure {wildcards.figure} --workload {params.workload} --out results/figures/{wildcards.figure} 2>&1 | tee {log}"


rule shared_figure:
    # Of all workloads together.
    input:
        tables=experiment.reads("figures/{figure}"),
        notes=experiment.notes("figures/{figure}"),
    output:
        multiext("results/figures/{figure}", ".pdf", ".png"),
        report("results/figures/{figure}.svg", **in_report.figure("drawing")),
        report("results/figures/{figure}.csv", **in_report.figure("numbers")),
        note="results/made/figures/{figure}.json",
    log:
        "results/logs/figure-{figure}.log",
    wildcard_constraints:
        figure="|".join(experiment.shared_figures()),
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        made_by=experiment.made_by("figures/{figure}"),
        again=experiment.again("figures/{figure}"),
    shell:
        "python -m strata make figures/{wildcards.figure} {params.again} --"
        " Rscript analysis/figure.R --{wildcards.figure} --plan results/plan.json --out results/figures/{wildcards.figure}"
        " {input.tables} 2>&1 | tee {log}"
