# Every command makes and uses the same .venv. Arguments travel in ARGS: make demo ARGS="--elements 100000 --batch-size 500"
# make demo URL=stomp://broker:61613 runs on a broker; the login comes from the environment, see docs/commands.md.

VENV := .venv
BIN := $(VENV)/bin
SPARK_TESTS := $(addprefix tests/spark/test_,source.py derived_frames.py growth.py session.py)
TOOLS := out/tools/bin
ARGS ?=
ROOM :=
URL :=

# The suite on several cores: a file is one worker's. tests/schedule.py says how many workers there are, in which order
# files begin, and that one worker has Spark and another the brokers. A few files alone are faster without.
# A worker that crashes ends the run: with one started in its place xdist may wait for ever. What ARGS says comes later
# and wins: ARGS="-n 0".
WORKERS = $(if $(findstring .py,$(ARGS)),,-n auto --maxprocesses=4 --dist loadfile --no-loadscope-reorder --max-worker-restart=0)

# A Python of the caller's must not leak into the environment; pip asks nothing and names no newer self. The suite starts
# hundreds of processes: each would compile the package again where the caller wants no bytecode kept.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

# Each stamp carries a checksum of what it depends on, so that a second call does nothing and a changed lock, or a
# checkout that was moved, installs again. The venv holds absolute paths, hence the folder.
checksum = $(firstword $(shell { cat $(1); echo '$(CURDIR)'; $(or $(2),:); } | cksum))
INSTALLED := $(VENV)/installed-$(call checksum,requirements.lock)
CORE := native/.cargo/config.toml native/Cargo.lock native/Cargo.toml native/hook.py $(wildcard native/src/*.rs)
READY := $(VENV)/ready-$(call checksum,requirements.lock pyproject.toml $(CORE),echo "$$MTOSI_JMS_BUILD"; cargo --version 2>&1)

RELEASING := out/tools/installed-$(call checksum,release.lock)
COMPILE = $(TOOLS)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" $(ARGS)

# Evaluated only where they are needed: the first suitable interpreter, and the major version of the Java that Spark would start.
suits = $(shell $(1) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(1))
INTERPRETER = $(firstword $(foreach python,$(or $(PYTHON),python3 python3.13 python3.12 python3.11),$(call suits,$(python))))
HAS_VENV = $(shell $(INTERPRETER) -c 'import ensurepip, venv' 2>/dev/null && echo yes)
JAVA_MAJOR = $(shell "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9][0-9]*\).*/\1/p')
HAS_JAVA = $(shell test 0$(firstword $(JAVA_MAJOR)) -ge 17 && echo yes)
HAS_LINTERS = $(shell test -e mtosi_jms/xmlbind/_core.abi3.so && cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 && echo yes)

NO_PYTHON = Python 3.11 or later is missing: on Debian or Ubuntu, apt-get install python3 python3-venv; elsewhere see python.org
NO_VENV = Python has no venv module: on Debian or Ubuntu, apt-get install python3-venv
NO_JAVA = Java 17 or later is missing: on Debian or Ubuntu, apt-get install openjdk-17-jre-headless

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test check bench brokers spark endurance lock stubs map docs docs-serve wheels sbom clean java

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile

demo: java $(READY) ## the main job, end to end: supplier, requestor, landing, Spark, report in out/demo
	@$(BIN)/mtosi-jms demo $(if $(URL),--url '$(subst ','\'',$(URL))') $(ARGS)

test: java $(READY) ## the whole test suite, on all cores, or one room: ROOM=core; tests on real brokers start and stop them themselves
	@$(BIN)/python -m pytest $(WORKERS) $(addprefix --room=,$(ROOM)) $(ARGS)

check: $(READY) ## ruff, mypy --strict, stub freshness; rustfmt and clippy where the native core is built
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(if $(HAS_LINTERS),cd native && cargo fmt --check && cargo clippy --quiet --release --locked -- --deny warnings)
	@rm -rf out/blocks && $(BIN)/python tests/examples/blocks.py out/blocks
	@cd out/blocks && ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache *.py
	@$(BIN)/mtosi-codegen check wsdl xsd --package stubs --out mtosi_jms
	@$(BIN)/mtosi-codegen check mtosi-1.1 --package stubs11 --out mtosi_jms

bench: java $(READY) ## the benchmarks beside their peers, as a table and in out/bench.json
	@$(BIN)/python benchmarks/run.py $(ARGS)

brokers: java $(READY) ## of the test suite those on real brokers alone
	@$(BIN)/python -m pytest $(WORKERS) -m "broker and not endurance" $(ARGS)

# The lock holds an older one, for Delta and Iceberg. The newest goes aside and is found first.
spark: java $(READY) ## the short Spark tests on the newest PySpark, or on SPARK=VERSION
	@$(BIN)/python -m pip install --quiet --upgrade --target out/spark "pyspark$(if $(SPARK),==$(SPARK))"
	@PYTHONPATH=out/spark $(BIN)/python -c 'import pyspark; print("PySpark", pyspark.__version__)'
	@PYTHONPATH=out/spark $(BIN)/python -m pytest -q -m "not endurance" $(SPARK_TESTS) $(ARGS)

endurance: java $(READY) ## what is too long for CI: the suite with the Python core, soaks, kill rounds, fuzzing, files of gigabytes
	@$(if $(ARGS),,MTOSI_JMS_CORE=python $(BIN)/python -m pytest $(WORKERS))
	@$(BIN)/python -m pytest -m "endurance or hypothesis" --hypothesis-profile=endurance $(ARGS)

stubs: $(READY) ## generate mtosi_jms/stubs again from wsdl and xsd, and mtosi_jms/stubs11 from mtosi-1.1
	@$(BIN)/mtosi-codegen generate wsdl xsd --package stubs --out mtosi_jms
	@$(BIN)/mtosi-codegen generate mtosi-1.1 --package stubs11 --out mtosi_jms

map: $(READY) ## draw docs/architecture.md and list the layers and the public names, from the imports
	@$(BIN)/python tests/house/structure.py

# What the theme says of its successor is no warning of ours.
docs: export NO_MKDOCS_2_WARNING := 1
docs: $(READY) ## the documentation as a site, in site/; a broken link or a page without a place is an error
	@$(BIN)/mkdocs build --quiet $(ARGS)

docs-serve: export NO_MKDOCS_2_WARNING := 1
docs-serve: $(READY) ## the site on loopback, made again as you write
	@$(BIN)/mkdocs serve $(ARGS)

lock: $(RELEASING) ## resolve requirements.lock and release.lock again; ARGS=--upgrade for newer versions
	@$(COMPILE) --all-extras --group dev --output-file requirements.lock pyproject.toml
	@$(COMPILE) --group release --output-file release.lock

wheels: $(READY) $(RELEASING) ## sources and wheels of a release into dist, checked and tried out
	@.ci/wheels

sbom: $(READY) $(RELEASING) ## the bills of materials of a release, in out/sbom
	@mkdir -p out/sbom
	@$(TOOLS)/cyclonedx-py environment --pyproject pyproject.toml --mc-type library --output-reproducible -o out/sbom/mtosi-jms.cdx.json $(BIN)/python
	@cargo cyclonedx --version >/dev/null 2>&1 || { echo "the bill of the crates needs cargo-cyclonedx: cargo install --locked cargo-cyclonedx"; exit 1; }
	@cd native && cargo cyclonedx --quiet --format json --spec-version 1.5 --override-filename core && mv core.json ../out/sbom/mtosi-jms-core.cdx.json

clean: ## remove what was made, .venv excepted
	@rm -rf out dist build site spark-warehouse metastore_db derby.log .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

java:
	@$(if $(HAS_JAVA),,$(error $(NO_JAVA))):

$(INSTALLED):
	@$(if $(INTERPRETER),$(if $(HAS_VENV),,$(error $(NO_VENV))),$(error $(NO_PYTHON))):
	@echo "making $(VENV) from requirements.lock; PySpark is large, so the first time takes a minute or more"
	@$(INTERPRETER) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	@touch $@

# Without the core one line says so; whoever installs cargo gets it with the next call.
$(READY): $(INSTALLED)
	@mkdir -p out && echo "installing this checkout; where Rust is, its native XML core is built, which takes a minute"
	@$(BIN)/python -m pip install --verbose --no-deps --no-build-isolation --editable . >out/install.log 2>&1 || { cat out/install.log; exit 1; }
	@sed -n '/without the native XML core/s/^ *//p' out/install.log
	@touch $@

$(RELEASING): $(INSTALLED)
	@$(BIN)/python -m venv --clear out/tools
	@$(TOOLS)/python -m pip install --quiet --require-hashes --requirement release.lock
	@touch $@
