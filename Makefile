# What a person does.  It needs Python 3.9 or later, bash 4.4 or later and GNU sort; what has to do
# with Hadoop needs Java 17 too, and Maven the first time.

PYTHON ?= python3
VENV := .venv/bin/python

.PHONY: run test browser-test hadoop-test hadoop-up hadoop-down hadoop-status bench bench-quick hadoop-bench lint format clean
run: .venv/.run
	@./run_local.sh data/videos.txt

test: .venv/.test # about ten minutes on two cores
	$(VENV) -m pytest --numprocesses=auto --cov --cov-fail-under=95

# Pages, in a real browser: chromium, chromium-browser or google-chrome.
browser-test: .venv/.test
	$(VENV) -m pytest -m browser tests

# A real cluster on this machine, for as long as the tests take; HADOOP_TESTS=skip leaves them out.
hadoop-test: .venv/.test
ifeq ($(HADOOP_TESTS),skip)
	@echo "make: THE TESTS ON HADOOP ARE SKIPPED, because HADOOP_TESTS=skip says so" >&2
else
	$(VENV) cluster/cluster.py run $(VENV) -m pytest -m hadoop
endif

hadoop-up hadoop-down hadoop-status: hadoop-%:
	@$(PYTHON) cluster/cluster.py $*

# The other libraries are large; OPTIONS are those of bench.run: make bench OPTIONS='--rounds 3'.
bench: .venv/.bench
	$(VENV) -m bench.run $(OPTIONS)
	$(VENV) -m bench.report.tables

bench-quick: .venv/.run
	$(VENV) -m bench.run --quick

hadoop-bench: .venv/.run
	$(VENV) cluster/cluster.py run $(VENV) -m bench.compare_hadoop

lint: .venv/.lint
	$(VENV) -m ruff check .
	$(VENV) -m ruff format --check .
	$(VENV) -m mypy

format: .venv/.lint
	$(VENV) -m ruff check --fix .
	$(VENV) -m ruff format .

clean:
	$(PYTHON) cluster/cluster.py down
	rm -rf .venv .hadoop .ship .bench .pytest_cache .hypothesis .mypy_cache .ruff_cache .coverage *.egg-info

.venv/.run: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 9))' || { echo "make: needs Python 3.9 or later as '$(PYTHON)'; on Debian and Ubuntu: apt-get install python3, or name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make: this Python has no venv; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(VENV) -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/.test .venv/.lint .venv/.bench: .venv/.run
	$(VENV) -m pip install --quiet --disable-pip-version-check --editable '.[$(patsubst .venv/.%,%,$@)]'
	@touch $@
