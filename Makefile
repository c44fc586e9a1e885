# Every target is a plain command; `make` only saves typing and sees to it that the environment is there.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup demo test compiled coverage image-test campaign lint style types layers format bench lock audit clean

# The processes of a test run would else compile all tests each for itself.
export PYTHONDONTWRITEBYTECODE :=

help: ## Show this help.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

setup: .venv/.complete ## Make .venv with everything locked (all other targets do it first).

.venv/.complete: requirements-dev.txt pyproject.toml
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: setup ## Start a control plane, agent and webhooks, show them at work; until Ctrl-C.
	$(BIN)/python -m devcluster demo

test: setup ## Run all checks and tests.
	$(BIN)/python -m devcluster build
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint compiled
	$(BIN)/python -m pytest -n 6

compiled: setup # Errors are shown by the run itself.
	-@$(BIN)/python -m pytest --collect-only --quiet > /dev/null

coverage: setup ## Run all tests and show which branches of each package they take; takes longer than `make test`.
	$(BIN)/python -m devcluster build
	$(BIN)/coverage erase
	-$(BIN)/coverage run -m pytest -n 6
	$(BIN)/coverage combine --quiet
	$(BIN)/python -m tests.coverage_table

image-test: setup ## Build the image and run it (needs root, buildah, podman, runc, debootstrap).
	IMAGE_TEST=1 $(BIN)/python -m pytest -s tests/cluster/test_manifests_image.py

campaign: setup ## Random work and random faults for ten minutes; SEED=7 chooses the plan.
	$(BIN)/python -m tests.campaign --minutes 10 $(if $(SEED),--seed $(SEED))

lint: types style layers ## Check style, types and layers.

style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports --no-cache

format: setup ## Format the code.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup ## Measure; writes the reports in benchmarks/.
	$(BIN)/python -m benchmarks

lock: ## Resolve the dependencies anew (needs uv).
	uv pip compile --quiet --generate-hashes --universal --no-annotate --no-header pyproject.toml -o requirements.txt
	uv pip compile --quiet --generate-hashes --universal --no-annotate --no-header --all-extras pyproject.toml -o requirements-dev.txt
	uv pip compile --quiet --generate-hashes --universal --no-annotate --no-header --group sbom -o requirements-sbom.txt
	uv pip compile --quiet --generate-hashes --universal --no-annotate --no-header --group fuzz -o requirements-fuzz.txt
	uv pip compile --quiet --generate-hashes --universal --no-annotate --no-header --extra tracing pyproject.toml -o requirements-tracing.txt

audit: setup ## Look for known vulnerabilities of all that is locked; INDEX=URL or DATA=FILE says where.
	$(BIN)/python -m tests.vulnerability_audit $(if $(INDEX),--index $(INDEX)) $(if $(DATA),--data $(DATA)) \
		$(sort $(wildcard requirements*.txt))

clean: ## Remove what the other targets made here.
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
