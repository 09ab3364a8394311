#!/usr/bin/env bash
# install.sh BUILD_DIR VERSION: installs into a scratch folder; the program there knows its version
# and accepts the topologies installed beside it.
set -euo pipefail
build_dir=$1 version=$2

prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build_dir" --prefix "$prefix" >/dev/null
"$prefix/bin/troupe" --version | grep -F "$version"
for topology in "$prefix"/share/troupe/topologies/*.yaml; do
  "$prefix/bin/troupe" check "$topology" >/dev/null
  echo "accepted ${topology##*/}"
done
