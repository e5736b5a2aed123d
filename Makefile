# What a person does; `make help` lists it.  It needs Python 3.9 or later, bash 4.4 or later
# and GNU sort; what has to do with Spark and Hadoop needs Java 17 too, and Hadoop Maven the first time.

PYTHON ?= python3
VENV := .venv/bin/python

# Where compiled modules are not kept, each of thousands of processes compiles them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run help check test slow-test test-all coverage browser-test spark-test hadoop-test hadoop-up hadoop-down hadoop-status bench bench-quick cluster-bench docs wheels lint format clean
run: .venv/.run ## the near-duplicates of data/videos.txt, as pairs on stdout
	@./run_local.sh data/videos.txt

help: ## this list
	@sed -n 's/^\([a-z][a-z -]*\):.*## \(.*\)/\1|\2/p' Makefile | \
	  while IFS='|' read -r name does; do printf 'make %-14s %s\n' "$$name" "$$does"; done

check: .venv/.lint .venv/.test ## style, types and the tests of single modules
	$(VENV) -m ruff check .
	$(VENV) -m ruff format --check .
	$(VENV) -m mypy
	$(VENV) -m pytest --numprocesses=auto --dist=worksteal --quiet $(addprefix tests/,joins lines runtime sets similarity stages verification)

test: .venv/.test ## the tests of every part and every engine without Java, in three minutes
	$(VENV) -m pytest --numprocesses=auto --dist=worksteal $(EXAMPLES)

THOROUGH = --hypothesis-profile=thorough
slow-test: .venv/.test-all ## the slow ones: packaging, documents, interruption, many engines and cases
	$(VENV) -m pytest --numprocesses=auto --dist=worksteal -m 'slow and not hadoop and not browser and not spark' $(THOROUGH) $(EXAMPLES) tests

test-all: ## both, with more examples; 15 to 30 minutes on two cores
	$(MAKE) test EXAMPLES=$(THOROUGH)
	$(MAKE) slow-test

coverage: .venv/.test-all ## which lines no test runs; at least twice as long
	$(VENV) -m pytest --numprocesses=auto --dist=worksteal -m 'not hadoop and not browser and not spark' --cov --cov-fail-under=95

browser-test: .venv/.test ## those of pages, in a real browser: it needs chromium
	$(VENV) -m pytest -m browser tests

spark-test: .venv/.test .venv/.spark ## those on a real Spark, with a master and workers on this machine
	$(VENV) -m pytest -m spark --numprocesses=2 --dist=loadfile tests/on_spark

# A real cluster on this machine, for as long as the tests take; HADOOP_TESTS=skip leaves them out.
# Half of the time of a job is waiting, so two run at once; faults come last, with nothing beside.
FAULTS := tests/on_hadoop/test_hadoop_faults.py
ON_HADOOP := $(VENV) -m pytest -m hadoop
ITS_TESTS = $(filter-out $(FAULTS),$(shell grep -lr mark.hadoop tests --include=*.py))
hadoop-test: .venv/.test .venv/.spark ## those on a real Hadoop, which it starts and stops
ifeq ($(HADOOP_TESTS),skip)
	@echo "make: THE TESTS ON HADOOP ARE SKIPPED, because HADOOP_TESTS=skip says so" >&2
else
	$(VENV) cluster/cluster.py run sh -ec \
	  '$(ON_HADOOP) --numprocesses=2 --dist=loadfile $(ITS_TESTS); $(ON_HADOOP) $(FAULTS)'
endif

hadoop-up: ## start a Hadoop on this machine for trials
hadoop-down: ## stop it
hadoop-status: ## whether it runs, and how to use it
hadoop-up hadoop-down hadoop-status: hadoop-%:
	@$(PYTHON) cluster/cluster.py $* || [ $* = status -a $$? = 3 ]

# The other libraries are large; OPTIONS are those of bench.run: make bench OPTIONS='--rounds 3'.
bench: .venv/.bench ## bench/results/one-machine.md, with the other programs
	$(VENV) -m bench.run $(OPTIONS)
	$(VENV) -m bench.report.tables

bench-quick: .venv/.run ## answers, and bytes shuffled, in a minute
	$(VENV) -m bench.run --quick

cluster-bench: .venv/.run .venv/.spark ## the benchmark on Hadoop and Spark
	$(VENV) cluster/cluster.py run $(VENV) -m bench.compare_clusters

docs: .venv/.docs ## the documents as a searchable site, in .site/
	$(VENV) -m mkdocs build --strict --quiet

wheels: .venv/.wheels ## the sdist and a wheel for each platform, in dist/
	$(VENV) .ci/wheels.py

lint: .venv/.lint ## style and types
	$(VENV) -m ruff check .
	$(VENV) -m ruff format --check .
	$(VENV) -m mypy

format: .venv/.lint ## repair what can be repaired of the style
	$(VENV) -m ruff check --fix .
	$(VENV) -m ruff format .

clean: ## remove all that the others have made
	$(PYTHON) cluster/cluster.py down
	rm -rf .venv .hadoop .ship .bench .site .pytest_cache .hypothesis .mypy_cache .ruff_cache .coverage *.egg-info build dist

# What the set-up says goes to stderr: `make run > FILE` writes pairs and nothing else.
PIP_INSTALL = $(VENV) -m pip install --quiet --disable-pip-version-check --editable

.venv/.run: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 9))' || { echo "make: needs Python 3.9 or later as '$(PYTHON)'; on Debian and Ubuntu: apt-get install python3, or name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make: this Python has no venv; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@exec >&2; set -ex; $(PYTHON) -m venv .venv; $(PIP_INSTALL) '.[mrjob,report]'
	@touch $@

.venv/.test .venv/.test-all .venv/.lint .venv/.bench .venv/.spark .venv/.docs .venv/.wheels: .venv/.run
	@exec >&2; set -ex; $(PIP_INSTALL) '.[$(patsubst .venv/.%,%,$@)]'
	@touch $@
