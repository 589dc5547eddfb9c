# What one does with this tree, each by one word: `make help` lists them. Plain make and sh.
.POSIX:
SHELL = /bin/sh
.DEFAULT_GOAL := help

VENV = .venv
PY = $(VENV)/bin/python
EXTRAS = service,camoufox,postgres,otel,dev
# Empty: the newest of python3.13, python3.12, python3.11, python3 that runs.
PYTHON =
# Tests mostly wait for browsers, so more run at a time than there are cores.
TEST_WORKERS = 3
# `make test COVERAGE=` measures no coverage; `make test ARGS="-k finder"` runs some.
COVERAGE = --cov --cov-report=
ARGS =
SITE_PORT = 8001

.PHONY: help install browsers test-browsers serve test check coverage format bench clean test-313

help: ## list these words
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

install: ## make .venv with all that the service and its tests need
	@sh deploy/install.sh "$(VENV)" "$(EXTRAS)" "$(PYTHON)"

browsers: install ## find a Chromium, or install one
	@$(VENV)/bin/arachne browsers install

serve: install browsers ## run the service beside a small sample site; Ctrl-C ends both
	@exec $(PY) deploy/serve.py --site-port $(SITE_PORT)

test-browsers: browsers
	@sh deploy/test-browsers.sh

test: install test-browsers ## run all tests but the soak
	@sh deploy/test.sh "$(PY)" "$(TEST_WORKERS)" "$(COVERAGE)" $(ARGS)
	@echo "Tests passed. Next: make check, then commit."

check: install ## look at style, types, imports, dependencies and coverage
	@PATH="$$PWD/$(VENV)/bin:$$PATH" sh deploy/check.sh
	@echo "Checks passed. Next: make test."

coverage: install ## hold the last test run's coverage against its thresholds
	@sh deploy/coverage.sh "$(PY)"

format: install ## put the code into its form
	@$(VENV)/bin/ruff check --fix --quiet . || true
	@$(VENV)/bin/ruff format .

bench: install browsers ## measure: one line each, name value unit goal ok|short
	@$(PY) -m bench $(ARGS)

test-313: ## run the unit and contract tests on Python 3.13, where there is one
	@sh deploy/test-313.sh

clean: ## take away caches, builds and coverage (the .venv stays)
	@rm -rf build dist .coverage .coverage.* coverage.xml .hypothesis .mypy_cache .pytest_cache .ruff_cache \
	    .import_linter_cache
	@find . -name __pycache__ -not -path './.venv*' -type d -prune -exec rm -rf {} +
	@echo "Clean. Next: make test."
