# The project's commands; `make` alone lists them. All work is done inside the checkout: Python in .venv,
# Rust in target. Cargo runs with the release profile everywhere, so that nothing is compiled twice.

VENV := .venv
BIN := $(VENV)/bin
# Not `all`: it refers to the package by name, which pip would look for outside of the checkout.
EXTRAS := xarray,netcdf,hdf5,zarr,pandas,polars,dask,mpi,dev
# BP files are read by the library of the package adios2, where that is installed.
export SIEVA_ADIOS2 ?= $(firstword $(wildcard $(CURDIR)/.venv/lib/python3*/site-packages/adios2))
# One environment for maturin and cargo: a difference would make cargo compile the binding anew, and maturin after it.
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# What maturin tells the build scripts of pyo3, by the file that it writes for them.
PYO3 = PYO3_BUILD_EXTENSION_MODULE=1 \
	PYO3_ENVIRONMENT_SIGNATURE=$(shell $(BIN)/python -c 'import struct, sys; v = sys.version_info; \
		print(f"{sys.implementation.name}-{v[0]}.{v[1]}-{8 * struct.calcsize(chr(80))}bit")') \
	$(addprefix PYO3_CONFIG_FILE=,$(firstword $(shell ls -t $(CURDIR)/target/maturin/pyo3-config-*.txt 2>/dev/null)))
CARGO = env $(PYO3) cargo
# With the binding, though it has no Rust tests: it makes cargo choose the features that the wheel has.
CARGO_TEST = $(CARGO) test --release --locked --workspace

RUST_SOURCES := $(shell find crates python/src -type f \( -name '*.rs' -o -name Cargo.toml \) 2>/dev/null)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup build demo services valgrind libhdf5 install uninstall gridftp gridftp-packages mpi mpi-packages adios2 slurm-packages striped-packages prepared test test-rust test-python conformance lint cargo-deny advisories \
	bench bench-check bench-kernels bench-objects bench-fasm bench-groups bench-regret bench-many bench-read-many bench-catalog bench-remote bench-memory sds pdc hila hila-packages scibox scibox-packages sdquery fuzz mutants mutants-isolated clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST) | expand -t 23

setup: $(VENV)/.ready ## make .venv with the build requirements; names missing system tools

build: $(VENV)/.built ## compile and install the package with all extras into .venv

demo: build ## make two small files and answer four queries on them
	$(BIN)/sieva demo

services: .venv-services/.ready ## the object stores that the tests of remote storage start, in an environment of their own

.venv-services/.ready:
	@{ python3 -m venv .venv-services && \
	.venv-services/bin/pip install --quiet --disable-pip-version-check swift python-swiftclient boto3 \
		"moto[s3]" flask flask-cors && touch $@; } || \
		echo 'services: not installed; the tests that need them are skipped' >&2

# Where the C interface goes: PREFIX, LIBDIR, INCLUDEDIR, BINDIR; DESTDIR before all of them, for packages.
# MPICC=mpicc puts the library for that MPI beside it, with the Fortran modules.
install: $(VENV)/.ready ## build the C interface and install it; PREFIX=/usr/local, DESTDIR= for packages, MPICC=mpicc with that for MPI
	cargo build --release --locked -p sieva-capi
	$(MAKE) -C crates/capi install
	$(if $(MPICC),$(MAKE) -C plugins/mpi install)

uninstall: ## remove what make install has put there, with the same PREFIX and DESTDIR
	$(MAKE) -C crates/capi uninstall
	$(MAKE) -C plugins/mpi uninstall

# What is missing of Debian's packages is installed as root, or named: whose they are, the packages, options of apt-get.
define debian
@missing=; for package in $(2); do \
	dpkg -s $$package >/dev/null 2>&1 || missing="$$missing $$package"; \
done; \
test -z "$$missing" && exit 0; \
if test "$$(id -u)" = 0 && command -v apt-get >/dev/null; then \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(3) $$missing; \
else \
	echo "$(1): missing:$$missing" >&2; exit 1; \
fi
endef

# With the binding, as CARGO_TEST has it: the same features, Parquet among them.
gridftp: build ## compile the GridFTP plug-in and the library that it loads
	$(CARGO) build --release --locked -p sieva-capi -p sieva-python
	$(BIN)/maturin build --release --locked --quiet --out target/wheels
	$(MAKE) -C plugins/gridftp

GRIDFTP_PACKAGES := gcc pkg-config libglobus-gridftp-server-dev libglobus-gssapi-gsi-dev libssl-dev zlib1g-dev \
	globus-gridftp-server-progs globus-gass-copy-progs globus-proxy-utils openssl curl perl
gridftp-packages: ## install what the GridFTP plug-in needs (Debian, as root), or name what is missing
	$(call debian,gridftp,$(GRIDFTP_PACKAGES),)

SLURM_PACKAGES := slurm-wlm munge
slurm-packages: ## install Slurm (Debian, as root), which the tests start on loopback, or name what is missing
	$(call debian,slurm,$(SLURM_PACKAGES),--no-install-recommends)

STRIPED_PACKAGES := glusterfs-server ceph-mon ceph-osd ceph-mds ceph-common ceph-fuse
striped-packages: ## install CephFS and GlusterFS (Debian, as root), which the tests start on loopback, or name what is missing
	$(call debian,striped,$(STRIPED_PACKAGES),--no-install-recommends)

MPI_PACKAGES := openmpi-bin libopenmpi-dev mpich libmpich-dev gfortran
mpi-packages: ## install Open MPI, MPICH and a Fortran compiler (Debian, as root), or name what is missing
	$(call debian,mpi,$(MPI_PACKAGES),)

# Once for each MPI that is there, as libraries of MPI do not fit one another; Debian's have names.
MPICCS := $(or $(notdir $(foreach name,openmpi mpich,$(shell command -v mpicc.$(name)))),mpicc)
mpi: build ## compile the library for MPI programs, its Fortran modules and examples, with each MPI that is there
	$(CARGO) build --release --locked -p sieva-capi -p sieva-python
	@set -e; for mpicc in $(MPICCS); do $(MAKE) --no-print-directory -C plugins/mpi MPICC=$$mpicc all tests; done

# With the headers of the package adios2 in .venv, or ADIOS2=PREFIX.
adios2: build ## compile the engine for ADIOS2, its examples and tests
	$(CARGO) build --release --locked -p sieva-capi -p sieva-python
	$(MAKE) --no-print-directory -C plugins/adios2 all tests

# One more than there are cores, up to four: many tests wait for servers that they start.
WORKERS := $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 4 ? n + 1 : 4)))

# Side by side, once all is built: tests of the package wait for servers half of their time, in which others compute.
# Both run to their ends, whatever the other finds.
test: prepared conformance valgrind libhdf5 ## every test and check
	@mkdir -p target/tmp; \
	{ $(MAKE) --no-print-directory lint && $(CARGO_TEST); } >target/tmp/checks.log 2>&1 & checks=$$!; \
	$(BIN)/pytest -n $(WORKERS) --dist loadfile; package=$$?; \
	wait $$checks; rust=$$?; cat target/tmp/checks.log; \
	test $$package = 0 || echo 'make test: tests of the package failed: see above' >&2; \
	test $$rust = 0 || echo 'make test: a check or a test of the crates failed: see above' >&2; \
	test $$package = 0 -a $$rust = 0

test-rust: conformance valgrind libhdf5 ## the tests of the crates
	$(CARGO_TEST)

# The C interface is tested under it, too.
valgrind:
	@command -v valgrind >/dev/null && exit 0; \
	if test "$$(id -u)" = 0 && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq valgrind >/dev/null && exit 0; \
	fi; \
	echo 'valgrind: not installed; what the C interface loses of memory is not tested (apt-get install valgrind)' >&2

# An example of the C interface reads by it.
libhdf5:
	@pkg-config --exists hdf5 2>/dev/null && exit 0; \
	if test "$$(id -u)" = 0 && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq libhdf5-dev pkg-config >/dev/null && exit 0; \
	fi; \
	echo 'libhdf5: not installed; the example that reads by it is not tested (apt-get install libhdf5-dev)' >&2

conformance: build ## the files that the conformance cases ask about, in target/conformance
	$(BIN)/python conformance/generate.py

test-python: prepared ## the tests of the package and the conformance suite
	$(BIN)/pytest -n $(WORKERS) --dist loadfile

prepared: build services ## what the tests of the package run beside it: plug-ins, servers, MPI
	@if $(MAKE) --no-print-directory gridftp-packages; then $(MAKE) --no-print-directory gridftp; \
	else echo 'gridftp: not built; its tests are skipped' >&2; fi
	@$(MAKE) --no-print-directory slurm-packages || echo 'slurm: not there; its tests are skipped' >&2
	@$(MAKE) --no-print-directory striped-packages || echo 'striped file systems: not there; their tests are skipped' >&2
	@if $(MAKE) --no-print-directory mpi-packages; then $(MAKE) --no-print-directory mpi; \
	else echo 'mpi: not there; its tests are skipped' >&2; fi
	@$(MAKE) --no-print-directory adios2 || echo 'adios2: not built; the tests of the engine are skipped' >&2

lint: build ## formatting, lints, types and the repository's own checks
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	cargo fmt --all --check
	$(CARGO) clippy --release --locked --workspace --all-targets -- -D warnings
	$(BIN)/python tools/check_layers.py
	$(BIN)/python tools/check_features.py
	$(BIN)/python tools/check_tidy.py
	@if [ -x "$(CARGO_DENY)" ]; then "$(CARGO_DENY)" --offline check licenses bans sources; \
	else echo 'lint: SKIPPED: licences and sources of dependencies: cargo-deny is not installed (make cargo-deny)' >&2; fi

CARGO_DENY := $(firstword $(wildcard target/tools/bin/cargo-deny) $(shell command -v cargo-deny))
cargo-deny: ## install cargo-deny for make lint, which takes minutes to compile
	cargo install --locked --root target/tools cargo-deny

advisories: ## compare Cargo.lock with the database of RustSec, from the network
	@[ -x "$(CARGO_DENY)" ] || { echo 'make cargo-deny first' >&2; exit 1; }
	"$(CARGO_DENY)" check advisories

bench: build ## compare with other tools; writes a table and a JSON file
	$(BIN)/python benches/run.py --page docs/benchmarks/indexes.md

BENCH_ONLY :=
bench-check: build ## measure again and name what got slower than what is kept; BENCH_ONLY='--only sds' for less
	rm -rf target/bench-check
	$(BIN)/python benches/run.py $(BENCH_ONLY) --results target/bench-check
	$(BIN)/python benches/check.py target/bench-check/*.json

bench-objects: build ## small objects by metadata and data, beside a traversal with h5py
	$(BIN)/python benches/objects/h5boss.py

bench-groups: build ## groups by coordinates, beside numpy, xarray, dask, flox and DuckDB; GROUPS='--megabytes 100' for less
	$(BIN)/python benches/groups.py $(GROUPS)

bench-fasm: build ## several queries at once beside one by one, and numpy; FASM='--megabytes 100' for less
	$(BIN)/python benches/fasm.py $(FASM)

bench-regret: build ## how often the chosen access path is near the best one while the machine is busy; REGRET='--waves'
	$(BIN)/python benches/regret.py $(REGRET)

bench-many: build ## 10 000 files as one source, beside xarray
	$(BIN)/python benches/catalog/many_files.py

bench-read-many: build ## 64 threads that read overlapping boxes of a compressed file, beside h5py
	$(BIN)/python benches/read_many.py $(READ_MANY)

BENCH_CATALOG := target/bench-data/catalog.sqlite
bench-catalog: build ## ingest of 5 million objects into a catalog, and finding them
	@mkdir -p $(dir $(BENCH_CATALOG)) && rm -f $(BENCH_CATALOG)*
	cargo run --release --locked -p sieva-catalog --example fill -- --objects 5000000 --db $(BENCH_CATALOG)
	cargo run --release --locked -p sieva-catalog --example fill -- --objects 5000000 --db $(BENCH_CATALOG) --find

bench-remote: build target/rivals-venv/.ready ## first queries on a remote object, beside h5py over fsspec
	$(BIN)/python benches/remote/latency.py --rivals target/rivals-venv/bin/python

MEMORY_TABLE := $(CURDIR)/target/memory-table.md
bench-memory: build ## the memory that every operator and output holds under three limits, as a table
	SIEVA_MEMORY_TABLE=$(MEMORY_TABLE) $(CARGO_TEST) --test memory -- --ignored --nocapture
	@cat $(MEMORY_TABLE)

target/rivals-venv/.ready:
	python3 -m venv $(dir $@)
	$(dir $@)bin/pip install --quiet --disable-pip-version-check fsspec aiohttp h5py numpy
	@touch $@

# Needs root, for network namespaces, and the plug-in with the packages of its server and client.
sdquery: gridftp ## repeat section 5 of SDQuery: results of queries by GridFTP on three networks; 25 minutes
	$(BIN)/python benches/sdquery/run.py

SDS :=
sds: build ## repeat section IV of SDS by MPI: indexes built and queried by several ranks; SDS='--particles 10000000' for less
	$(BIN)/python benches/parallel/sds.py --page docs/reproduction/sds.md $(SDS)

PDC :=
pdc: build ## repeat section VI of PDC-Query by Dask and MPI: regions, order of conditions, small objects, workers; PDC='--only fig3' for some
	cargo build --release --locked -p sieva-catalog --example fill
	$(BIN)/python benches/parallel/pdc.py --page docs/reproduction/pdc.md $(PDC)

HILA_PACKAGES := ceph-mon ceph-osd ceph-mds ceph-mgr ceph-fuse ceph-common attr libpnetcdf-dev openmpi-bin libopenmpi-dev mpich
hila-packages: ## install CephFS and PnetCDF (Debian, as root) for make hila, or name what is missing
	$(call debian,hila,$(HILA_PACKAGES),--no-install-recommends)

# Needs root, for mounts; 6 GiB of memory for what the servers hold.
HILA :=
hila: build hila-packages ## repeat section V of HiLa on CephFS: PnetCDF and MPI-IO beside read_many of all ranks, value queries at once, a model of 40 servers; 40 minutes; HILA='--runs 3 --calls 10 30 50' for 15
	$(BIN)/python benches/hila/run.py --page docs/reproduction/hila.md $(HILA)

SCIBOX_PACKAGES := memcached iproute2
scibox-packages: ## install what Swift and shaped links need for make scibox (Debian, as root), or name what is missing
	$(call debian,scibox,$(SCIBOX_PACKAGES),--no-install-recommends)

SCIBOX :=
scibox: build services scibox-packages ## repeat section VII of Scibox on Swift, S3 and a directory beside the stock system; SCIBOX='--only fig6 --scale small'
	$(BIN)/python benches/scibox/run.py --page docs/reproduction/scibox.md $(SCIBOX)

# Inputs that are found are kept in fuzz/corpus, what makes a target fail in fuzz/artifacts. Stores and replicas are
# made in memory where there is a file system for that: their builders wait for the disk.
FUZZ_SECONDS := 60
FUZZ_TARGETS := stats_decode bitmap_head store_files sorted_files access_paths \
	netcdf3_file hdf5_file fits_file zarr_tree filter_pipeline manifest_file reference_set \
	query_text query_run plan_bytes plan_json partial_bytes collection_task_bytes catalog_find selection_file cf_text \
	striping_text reduction_forms
bench-kernels: ## time the innermost loops (criterion); KERNELS='decoding' for some of them
	cd benches/kernels && CARGO_TARGET_DIR=../../target/kernels cargo bench --locked -- $(KERNELS)

fuzz: ## feed each fuzz target for FUZZ_SECONDS (60); needs cargo-fuzz
	@command -v cargo-fuzz >/dev/null || { \
		echo 'no cargo-fuzz: get it with `cargo install --locked cargo-fuzz`' >&2; exit 1; }
	cargo fuzz build -s none
	@if test -w /dev/shm; then TMPDIR=$$(mktemp -d -p /dev/shm sieva-fuzz.XXXXXX); \
	else TMPDIR=$$(mktemp -d); fi; export TMPDIR; trap 'rm -rf "$$TMPDIR"' EXIT; \
	for target in $(FUZZ_TARGETS); do \
		cargo fuzz run -s none "$$target" -- -max_total_time=$(FUZZ_SECONDS) -max_len=2048 -len_control=0 \
			-timeout=10 -rss_limit_mb=1024 -verbosity=0 -print_funcs=0 || exit 1; \
	done

# Mutants of the conformance files, and of files below SIEVA_SHARED_DATA where it is set. The same seed makes the same ones.
MUTANTS := 200000
FEED_MUTANTS = nice -n 19 $(BIN)/python fuzz/mutants.py --count $(MUTANTS) --keep fuzz/artifacts/mutants
mutants: conformance ## ask MUTANTS (200000) damaged files, in process; findings are kept in fuzz/artifacts/mutants
	$(FEED_MUTANTS) target/conformance $(SIEVA_SHARED_DATA)

mutants-isolated: conformance ## the same of other damaged files, each parsed in a process of its own
	$(FEED_MUTANTS) --isolated --seed isolated target/conformance $(SIEVA_SHARED_DATA)

clean: ## remove everything that was built
	rm -rf target fuzz/target $(VENV) .venv-services python/sieva/_native*.so

$(VENV)/.ready: tools/setup pyproject.toml
	tools/setup
	@touch $@

$(VENV)/.built: $(VENV)/.ready Cargo.toml Cargo.lock .cargo/config.toml python/Cargo.toml pyproject.toml $(RUST_SOURCES)
	$(BIN)/maturin develop --release --locked --extras $(EXTRAS)
	@touch $@
