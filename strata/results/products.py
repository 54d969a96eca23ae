"""The one list of what an experiment has: every file that is made of its cells, by which code, and of what."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from strata.base.contracts import result
from strata.experiment import figures

PAPERS = ("paper/report.pdf", "paper/report.html")
_PUBLISHED = ("published/claims.json", "published/ibm-figures.csv", "published/ibm-table1.json",
              "published/ibm-tables.json")  # fmt: skip
# How the originals' own numbers test their claims, how these were read, and what came of it for those raw results
# that were at hand.
_OWN_CLAIMS = ("published/ibm-own-claims.json", "published/ibm-readings.json")
_OWN_VERDICTS = ("published/ibm-raw-claims.csv", "published/ibm-raw-table1.csv")
# The text of a paper, and what it says of the artifact.
_TEXT = ("paper/report.Rmd", "paper/references.bib", "CITATION.cff", "scripts/packages.txt")
# What the text of a paper is put into, by the ending of its file.
_PAGES = {
    "pdf": (*_TEXT, "paper/template.tex"),
    "html": (*_TEXT, "paper/template.html", "paper/report.css", "paper/report.js"),
}
REANALYSIS_TABLES = ("tidy", "series", "unreadable", "differences", "table1", "claims", "sources")
# What a figure is drawn as, and what it draws.
_DRAWN = ("pdf", "png", "svg", "csv")
REANALYSIS_FIGURES = tuple(f"figure-{number}" for number in (3, *range(5, 14)))


@dataclass(frozen=True)
class Product:
    """The files that one job makes.

    name: what it is called here and in the rules.  files: what is made.  command: the R command that makes it.
    sources: what else of the project's source that reads.  reads: files of other products.
    cells: workloads whose logs and records it reads, in the first `blocks` (None: in all that were needed).
    whole: whether it tells of the image, of cells that failed, and of the source's revision too.
    planned: whether it follows from a plan.
    """

    name: str
    files: tuple[str, ...]
    command: str
    sources: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    blocks: int | None = None
    whole: bool = False
    planned: bool = True

    @property
    def note(self) -> str:
        """The file that tells of what these were made."""
        return f"results/made/{self.name}.json"


def precision(experiment: dict, block: int, asked: Iterable[int]) -> Product:
    """What is decided after a block; `asked` are the blocks after which something is."""
    before = tuple(result("precision", block=other) for other in asked if other < block)
    loads = tuple(sorted(experiment["workloads"]))
    sources = tuple(f"workloads/{load}/parse.R" for load in loads)
    if experiment["precision"].get("claims"):
        sources += ("published/claims.json",)
    return Product(
        f"precision/{block}", (result("precision", block=block),), "precision", sources, before, loads, block
    )


def of_experiment(experiment: dict, measured: Collection[str], blocks: Iterable[int] = ()) -> dict[str, Product]:
    """Every product of a plan, by its name, each after those that it reads.

    measured: workloads that have a cell to show.  blocks: those after which the precision was asked for.
    """
    loads = [load for load in sorted(experiment["workloads"]) if load in measured]
    found = [precision(experiment, block, blocks) for block in blocks]
    decided = tuple(file for product in found for file in product.files)
    tidy = {load: result("tidy", workload=load) for load in loads}
    summary = {load: result("summary", workload=load) for load in loads}
    tidies, summaries, cells = tuple(tidy.values()), tuple(summary.values()), tuple(loads)
    for load in loads:
        parser = (f"workloads/{load}/parse.R",)
        found.append(Product(f"tidy/{load}", (tidy[load],), "tidy", parser, decided, (load,)))
    for load in loads:
        found.append(Product(f"summary/{load}", (summary[load],), "summary", reads=(tidy[load],)))
    found += [
        Product("comparisons", (result("comparisons"),), "comparisons", (), (*summaries, *decided), cells),
        Product("claims", (result("claims"),), "claims", _PUBLISHED, (*tidies, *decided), cells),
        Product("footprint", (result("footprint"),), "footprint", (), tidies, cells),
        Product("sets", (result("sets"),), "sets", (), tidies, cells),
        Product("choices", (result("choices"),), "choices", (), tidies),
    ]
    if experiment.get("spread"):
        found.append(Product("nodes", (result("nodes"),), "nodes", (), tidies, cells))
    drawn = {stem: load for stem, load in figures.of_plan(experiment).items() if load in tidy}
    of_figure = {stem: (tidy[load], summary[load]) for stem, load in drawn.items()}
    shared = {"answers": summaries, "order": tidies, "drift": tidies, "ratios": summaries}
    shared |= {name: (result(name),) for name in ("claims", "footprint")}
    for stem, reads in {**of_figure, **shared}.items():
        files = tuple(result("figure", stem=stem, ending=ending) for ending in _DRAWN)
        sources: tuple[str, ...] = () if stem in ("answers", "order", "drift", "footprint") else _PUBLISHED
        sources += _OWN_VERDICTS if stem == "claims" else ()
        found.append(Product(f"figures/{stem}", files, "figure", sources, reads))
    made = tuple(file for product in found for file in product.files)
    for paper in PAPERS:
        texts = (*_PAGES[paper.rpartition(".")[2]], *_PUBLISHED, *_OWN_VERDICTS)
        found.append(Product(paper, (paper,), "report", texts, made, cells, whole=True))
    return {product.name: product for product in found}


def of_reanalysis() -> dict[str, Product]:
    """What is made of the published raw results of the original paper; no archive of an experiment holds it."""
    folder = "results/reanalysis"
    tables = tuple(f"{folder}/{table}.csv" for table in REANALYSIS_TABLES)
    drawn = tuple(f"{folder}/{stem}.{ending}" for stem in REANALYSIS_FIGURES for ending in _DRAWN)
    text = ("paper/reanalysis.Rmd", "paper/template.tex", "paper/references.bib", *_PUBLISHED, *_OWN_CLAIMS)
    made = (*tables, f"{folder}/source.json")
    found = [
        Product("reanalysis/tables", made, "reanalyse", (*_PUBLISHED, *_OWN_CLAIMS), planned=False),
        Product("reanalysis/figures", drawn, "reanalysis_figures", (), (f"{folder}/differences.csv",), planned=False),
        Product(
            "paper/reanalysis.pdf", ("paper/reanalysis.pdf",), "reanalysis_paper", text, (*made, *drawn), planned=False
        ),
    ]
    return {product.name: product for product in found}


def is_table(name: str) -> bool:
    """Whether a product must be the same bytes wherever it is made: text of numbers, with no version in it."""
    return name.endswith((".csv", ".json"))
