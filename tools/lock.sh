#!/usr/bin/env bash
# Pins the dependencies: versions and hashes, no registry addresses. `--upgrade` takes the newest versions.
set -euo pipefail
cd "$(dirname "$0")/.."

compile() {
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-header --no-annotate --no-emit-index-url "$@" pyproject.toml
}
lab=packages/holdfast-lab/pyproject.toml

# Each follows the one before, so that the tests and the benchmarks run what `make dist` installs.
# The benchmarks have a scikit-learn of their own: a peer needs an old one.
compile --all-extras --group dev --output-file requirements.lock "$@" $lab
compile --constraint requirements.lock --output-file requirements-runtime.lock "$@"
compile --constraint requirements.lock --group install --output-file requirements-demo.lock "$@" $lab
compile --constraint requirements.lock --extra client --extra postgres --extra server --output-file requirements-server.lock "$@"
compile --constraint requirements-runtime.lock --extra client --extra plot --extra server --group bench --output-file requirements-bench.lock "$@"

if grep -n '://' requirements*.lock; then
    echo "a lock file holds an address" >&2
    exit 1
fi
