# What a person does.  It needs Python 3.9 or later, bash 4.4 or later and GNU sort.

PYTHON ?= python3
VENV := .venv/bin/python

.PHONY: run test bench lint format clean
run: .venv/.run
	@./run_local.sh data/videos.txt

test: .venv/.test
	$(VENV) -m pytest --numprocesses=auto --cov --cov-fail-under=95

bench: .venv/.run
	$(VENV) -m bench.run

lint: .venv/.lint
	$(VENV) -m ruff check .
	$(VENV) -m ruff format --check .
	$(VENV) -m mypy

format: .venv/.lint
	$(VENV) -m ruff check --fix .
	$(VENV) -m ruff format .

clean:
	rm -rf .venv .bench .pytest_cache .hypothesis .mypy_cache .ruff_cache .coverage *.egg-info

.venv/.run: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 9))' || { echo "make: needs Python 3.9 or later as '$(PYTHON)'; on Debian and Ubuntu: apt-get install python3, or name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make: this Python has no venv; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(VENV) -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/.test .venv/.lint: .venv/.run
	$(VENV) -m pip install --quiet --disable-pip-version-check --editable '.[$(patsubst .venv/.%,%,$@)]'
	@touch $@
