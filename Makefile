# Every target is a plain command; `make` saves typing and creates the environment.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: docs crds manifests help setup runtime demo demo-garden check test compiled coverage matrix image-test campaign lint style types layers format bench lock audit release publish clean

# Otherwise each process of a test run compiles all tests.
export PYTHONDONTWRITEBYTECODE :=

help: ## Show this help.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

setup: .venv/.complete ## Create .venv with all locked packages, including tools for tests (prerequisite of most targets).

.venv/.complete: requirements-dev.txt pyproject.toml
	$(call environment,.venv,requirements-dev.txt)

# Dependencies of demos and programs: a sixth of all. A complete environment is used if it exists.
runtime: $(if $(wildcard .venv/.complete),.venv/.complete,.venv/.runtime)

.venv/.runtime: requirements-demo.txt pyproject.toml
	$(call environment,.venv,requirements-demo.txt)

define environment
	@echo "making the environment $(1), with $$(grep -c '^[^ #]*==' $(2)) locked packages; once"
	$(PYTHON) -m venv --clear $(1)
	$(1)/bin/python -m pip install --disable-pip-version-check --quiet --require-hashes --no-deps -r $(2)
	$(1)/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable .
	touch $@
endef

demo: runtime ## Start a control plane, agent and webhooks, show them at work; until Ctrl-C. NAME=x for a second demo.
	$(BIN)/python -m devcluster demo $(if $(NAME),--name $(NAME))

demo-garden: runtime ## Start a garden, and show its API and its controllers at work; until Ctrl-C. NAME=x as above.
	$(BIN)/python -m devcluster demo --garden $(if $(NAME),--name $(NAME))

check: setup ## Run all checks, and the tests that need no control plane; four minutes on two cores.
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint
	$(BIN)/python -m pytest -n 2 -m 'not control_plane'

test: setup ## Run all checks and tests.
	$(BIN)/python -m devcluster build
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint compiled
	$(BIN)/python -m pytest -n 3

compiled: setup # The test run itself shows errors.
	-@$(BIN)/python -m pytest --collect-only --quiet > /dev/null

docs: setup ## Build the documentation as a site: build/site.
	.venv/bin/python -m release.site build/site

coverage: setup ## Run all tests and show branch coverage of each package; takes longer than `make test`.
	$(BIN)/python -m devcluster build
	$(BIN)/coverage erase
	-$(BIN)/coverage run -m pytest -n 6
	$(BIN)/coverage combine --quiet
	$(BIN)/python -m tests.coverage_table

matrix: setup ## Test several versions of Kubernetes, about ten minutes each; VERSIONS="1.28 1.30" chooses them.
	$(BIN)/python -m tests.matrix $(VERSIONS)

image-test: setup ## Build the image and run it (needs root, buildah, podman, runc, debootstrap).
	IMAGE_TEST=1 $(BIN)/python -m pytest -s tests/cluster/test_manifests_image.py

campaign: setup ## Run random work and random faults for ten minutes; SEED=7 chooses the plan.
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

crds: setup ## Generate the CustomResourceDefinitions of the garden API from gardener/api/garden.
	$(BIN)/python -m gardener.api manifests/crds/garden

manifests: setup ## Generate the manifests of the gardenlet from its chart (needs helm).
	$(BIN)/python -m release.gardenlet_manifests

bench: setup ## Run the benchmarks; write the reports in benchmarks/.
	$(BIN)/python -m benchmarks

lock: ## Resolve and lock the dependencies (needs uv).
	uv pip compile --quiet --generate-hashes --universal --no-annotate --no-header pyproject.toml -o requirements.txt
	uv pip compile --quiet --generate-hashes --universal --no-annotate --no-header --all-extras pyproject.toml -o requirements-dev.txt
	uv pip compile --quiet --generate-hashes --universal --no-annotate --no-header --group sbom -o requirements-sbom.txt
	uv pip compile --quiet --generate-hashes --universal --no-annotate --no-header --group fuzz -o requirements-fuzz.txt
	uv pip compile --quiet --generate-hashes --universal --no-annotate --no-header --extra cel pyproject.toml -o requirements-cel.txt
	uv pip compile --quiet --generate-hashes --universal --no-annotate --no-header --extra demo pyproject.toml -o requirements-demo.txt
	uv pip compile --quiet --generate-hashes --universal --no-annotate --no-header --extra tracing pyproject.toml -o requirements-tracing.txt

audit: setup ## Check the locked packages for known vulnerabilities in INDEX=URL or DATA=FILE.
	$(BIN)/python -m tests.vulnerability_audit $(if $(INDEX),--index $(INDEX)) $(if $(DATA),--data $(DATA)) \
		$(sort $(wildcard requirements*.txt))

release: build/release/.complete build/sbom/.complete ## Build a release in dist/ (docs/releases.md); BASE=IMAGE@DIGEST adds the image; GO adds helm.
	$(release)

publish: build/release/.complete build/sbom/.complete ## Build a release and publish it: REGISTRY=REGISTRY/TEAM BASE=IMAGE@DIGEST.
	$(release) --publish

release = build/release/bin/python -m release $(if $(REGISTRY),--registry $(REGISTRY)) $(if $(BASE),--base $(BASE)) \
	$(if $(GO),--go $(GO)) $(if $(TAG),--tag $(TAG)) $(if $(DOWNLOAD),--download $(DOWNLOAD)) $(if $(HOMEPAGE),--homepage $(HOMEPAGE))

# A separate environment, so that programs started from .venv, such as a demo, keep running.
build/release/.complete: requirements-dev.txt pyproject.toml
	$(call environment,build/release,requirements-dev.txt)

build/sbom/.complete: requirements-sbom.txt
	$(PYTHON) -m venv --clear build/sbom
	build/sbom/bin/python -m pip install --disable-pip-version-check --require-hashes --no-deps -r requirements-sbom.txt
	touch $@

clean: ## Remove the results of the other targets.
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
