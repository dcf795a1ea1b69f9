# make setup | demo | test | test-fast | test-thorough | test-versions | check | docs | pictures | bench | bench-accuracy | bench-discovery | bench-peers | kills | soak | audit | audit-outside | audit-coverage | fuzz | clean
# A machine needs Python 3.11 or newer, git and make. Spark's tests also need Java 17, and those of reports Chromium; they are skipped, with the reason, without it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One more than the two cores that times are stated for: some tests wait for processes that they start.
WORKERS ?= 3
# Fast tests seldom wait, and each worker imports and collects all of them first.
FAST_WORKERS ?= 2
# Compiled modules are kept, whatever the shell says: without them every process that a test starts compiles its own.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo test test-fast test-thorough test-versions check format docs pictures bench bench-accuracy bench-discovery bench-peers kills soak audit audit-outside audit-coverage fuzz clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c '' || { echo "$(PYTHON) cannot be run. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "crowdgram needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

demo: setup
	$(BIN)/crowdgram demo --output demo-out --force

test: setup
	$(BIN)/python -m pytest -n $(WORKERS)

# Under two minutes: without Spark and without what is marked slow.
test-fast: setup
	$(BIN)/python -m pytest -n $(FAST_WORKERS) -m "not slow and not spark"

# Hours: all combinations where `make test` tries pairs, and ten times the random examples.
test-thorough: setup
	CROWDGRAM_TESTS=thorough $(BIN)/python -m pytest -n $(WORKERS)

# With the lowest and with the newest versions that pyproject.toml allows, on each Python from 3.11 to 3.14 that is there.
# PYTHONS="3.11 3.13", VERSIONS=lowest and TESTS="-m slow tests/privacy" choose among them.
test-versions:
	$(PYTHON) tools/versions.py $(PYTHONS:%=--python %) $(VERSIONS:%=--versions %) $(if $(TESTS),-- $(TESTS))

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python tools/check_layers.py

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The site, in site/; it fails on a link that leads nowhere. Open site/index.html: no server and no network are needed.
docs: setup
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: setup
	$(BIN)/python bench/speed.py
	$(BIN)/python bench/accuracy.py

# TABLES=FOLDER adds real tables; only then are the figures recorded, and README's pictures and table made of them.
bench-accuracy: setup
	$(BIN)/python bench/accuracy.py $(if $(TABLES),--tables $(TABLES) --json bench/results/accuracy.json)
	$(if $(TABLES),$(BIN)/python bench/pictures.py --from-record)
	$(BIN)/crowdgram paper complexity --output docs/images/complexity.png --force

# README's pictures and table, from what is recorded in bench/results.
pictures: setup
	$(BIN)/python bench/pictures.py --from-record

# Needs TABLES=FOLDER: synthetic items are too alike to be a test.
bench-discovery: setup
	$(BIN)/python bench/discovery.py --tables $(TABLES)

# Other tools on the same tables, each in an environment of its own in .peers/. TABLES=FOLDER adds real tables; only then
# are the figures recorded, and the picture and tables made of them.
bench-peers: setup
	$(BIN)/python bench/peers $(if $(TABLES),--tables $(TABLES) --json bench/results/peers.json)
	$(if $(TABLES),$(BIN)/python bench/pictures.py --from-record)

kills: setup
	$(BIN)/python bench/kills.py --kills 200

# Every mechanism, and every kind of whole release, under attack; tens of minutes. Odd input: a release or a clear error, never anything else.
# HOURS=0.25 for a short one.
soak: setup
	$(BIN)/python bench/soak.py --hours $(or $(HOURS),2)

audit: setup
	$(BIN)/crowdgram audit --all --mutants --runs 10

# Whole releases from outside, each form with a broken twin, by RUNS releases of each table; an hour or more.
audit-outside: setup
	$(BIN)/crowdgram audit --form all --black-box $(or $(RUNS),2000)

# Which statements of a release the replays on neighbouring tables run.
audit-coverage: setup
	$(BIN)/python tools/replay_coverage.py --missing

fuzz: setup
	$(BIN)/python bench/fuzz.py --cases $(or $(CASES),20000)

clean:
	rm -rf $(VENV) .versions .peers demo-out site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
