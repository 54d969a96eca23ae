# The commands of the README.  Each first installs what is missing.

PYTHON := .venv/bin/python
SNAKEMAKE := .venv/bin/snakemake --cores 1
PAPERS := paper/report.pdf paper/report.html
require_archive = @test -e "$(ARCHIVE)" || { echo "make $@: there is no file '$(ARCHIVE)': name \
    one, such as make $@ ARCHIVE=docs/small.zip" >&2; exit 2; }
# make paper CONFIG=mine.yaml: a configuration file that overrides config.yaml.
PAGES = $(if $(CONFIG),--configfile $(CONFIG))

# A variable that nothing reads is a mistake: it would be ignored in silence.
VARIABLES := CONFIG ARCHIVE SANDBOX RIG RUN BENCH VERSION AA UV PYTHON SNAKEMAKE
UNKNOWN = $(strip $(foreach name,$(filter-out $(VARIABLES) MAKEFLAGS MAKEOVERRIDES,$(foreach \
    word,$(MAKEOVERRIDES),$(firstword $(subst =, ,$(word))))),$(name)))
ifneq ($(UNKNOWN),)
$(error $(UNKNOWN) is no variable of this Makefile; known are $(VARIABLES). Keys of config.yaml go \
    into a file: make paper CONFIG=mine.yaml)
endif

.DEFAULT:
	@echo "make: '$@' is no target; \`make help\` lists them" >&2; exit 2

.PHONY: help paper everything today paper-partial plan summary report archive light verify rebuild \
    test test-unit test-papers test-system test-long test-rig rig lint format keys aa sizes bench \
    gallery readme-table release lock image-paper doctor setup clean

help:                   ## list these commands
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1\t\2/p' Makefile | expand -t 20

paper: checked          ## measure what is missing and make paper/report.pdf and .html
	$(SNAKEMAKE) $(PAGES) -- $(PAPERS)

everything: CONFIG = everything.yaml
everything: paper       ## the same with all experiments of the original (everything.yaml)

today: CONFIG = today.yaml
today: paper            ## test statements of 2020 to 2026 (today.yaml): an hour

paper-partial: checked  ## make the paper from the cells that exist, and show the gaps
	$(SNAKEMAKE) $(PAGES) --config partial=true -- $(PAPERS)

plan: setup             ## list the cells that are due, what has to be built, and the time
	@$(PYTHON) -m strata plan $(PAGES)

summary: checked        ## list the files that are made, their age, and what is planned for them
	@$(SNAKEMAKE) $(PAGES) --quiet all --summary

report: checked         ## Snakemake's report of papers and tables: report.zip
	$(SNAKEMAKE) $(PAGES) --report report.zip

archive: checked        ## pack the paper and all that it rests on into archive.zip
	$(SNAKEMAKE) $(PAGES) -- archive

light: checked          ## pack ratios and sessions alone into light.zip, to send
	$(SNAKEMAKE) $(PAGES) -- light

verify: setup-paper     ## check an archive: make verify ARCHIVE=archive.zip
	$(require_archive)
	$(PYTHON) -m strata verify -- "$(ARCHIVE)"

rebuild: setup-paper    ## make an archive's paper again: make rebuild ARCHIVE=archive.zip
	$(require_archive)
	$(PYTHON) -m strata rebuild $(if $(SANDBOX),--sandbox "$(SANDBOX)") -- "$(ARCHIVE)"

test: setup-test        ## everything that CI runs
	+$(MAKE) --no-print-directory --jobs 2 --output-sync=line test-others test-system

# These tests run beside systems under test, which have priority.
test-others: setup-test
	@failed=0; for stage in lint test-python test-r test-papers; do \
	nice -n 10 $(MAKE) --no-print-directory $$stage || failed=1; done; exit $$failed

# R's compiler costs more than it saves for functions that run for a moment.
TESTTHAT = R_ENABLE_JIT=0 Rscript -e \
    'testthat::test_dir("analysis/tests/$(1)", reporter = "summary")'

test-unit: test-python test-r  ## tests of functions and tables

test-python: setup-test
	$(PYTHON) -m pytest -q -n auto --dist worksteal tests/unit

test-r: setup-test
	$(call TESTTHAT,tables)

test-papers: setup-test ## papers, archives and whole runs without Docker
	$(call TESTTHAT,papers); r=$$?; \
	$(PYTHON) -m pytest -q -n auto --dist loadfile --durations 10 tests/whole && exit $$r

test-system: setup-test ## tests with real systems and machines
	$(PYTHON) -m pytest -q --maxfail 10 --durations 25 tests/system

test-long: setup-test   ## the repetitions that `make test` leaves out (docs/testing.md)
	$(PYTHON) -m pytest -q -n auto --dist worksteal -m long tests/unit
	$(PYTHON) -m pytest -q -n auto --dist worksteal -m long tests/whole
	$(PYTHON) -m pytest -q --durations 25 -m long tests/system
	$(PYTHON) -m pytest -q --durations 25 -m long tests/rig/test_short.py

# It takes three quarters of an hour once the disks of its hosts are made, and leaves nothing.
test-rig: setup-test    ## test on emulated hosts with KVM (docs/testing.md)
	$(PYTHON) -m pytest -q --durations 25 -m long tests/rig

rig: setup-test         ## run a command on an emulated host with KVM: make rig RUN="make paper"
	PYTHONPATH=tests:tests/helpers $(PYTHON) -m rig $(RIG) -- "$${RUN:-make doctor}"

lint: setup-test        ## Python, R, shell and Snakemake
	scripts/lint.sh

format:                 ## format code
	.venv/bin/ruff format .
	.venv/bin/snakefmt Snakefile rules
	git ls-files '*.sh' .ci/run | xargs .venv/bin/shfmt --write

lock: UV = uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate \
    --custom-compile-command "make lock" pyproject.toml --group build
lock:                   ## write requirements*.txt with hashes (needs uv: pip install uv)
	$(UV) --output-file requirements.txt
	$(UV) --constraint requirements.txt --group test --output-file requirements-test.txt
	$(UV) --constraint requirements.txt --group slurm --output-file requirements-slurm.txt

release: setup-test     ## check that this commit can be released, and write release/
	scripts/release.sh

keys:                   ## write the tables of docs/ that follow from schemas
	$(PYTHON) scripts/schema_tables.py

gallery:                ## measure docs/gallery.md by the last commit: gallery.zip, docs/small.zip
	scripts/gallery.sh

readme-table: setup-paper  ## write README's first table from docs/sessions
	$(PYTHON) scripts/readme_table.py

aa: setup               ## the A/A test: one environment under two names
	$(PYTHON) scripts/aa_test.py $(AA)

sizes: setup            ## write level, ratio and scatter by size to docs/sizes.md (20 minutes)
	PYTHONPATH=. $(PYTHON) scripts/sizes.py

bench: setup-paper      ## measure the cost of the machinery (docs/architecture.md)
	PYTHONPATH=tests:tests/helpers $(PYTHON) -m bench $(BENCH)

image-paper: setup      ## build a container image in which archives are verified and rebuilt
	scripts/image-paper.sh

doctor:                 ## what this machine can and cannot measure; installs and starts nothing
	@$(firstword $(wildcard $(PYTHON)) python3) -m strata doctor $(PAGES)

clean:                  ## remove what an interrupted run left on this machine (results stay)
	$(PYTHON) -m strata clean

setup:
	@scripts/setup.sh run

ARCHIVE ?= archive.zip

.PHONY: test-others test-python test-r checked setup-test setup-paper
# Mistakes in configuration files: Snakemake would name neither file nor line.
checked: setup
	@$(PYTHON) -m strata check $(PAGES)

setup-test:
	@scripts/setup.sh test

setup-paper:            # what making a paper from measured logs needs: no Docker
	@scripts/setup.sh paper
