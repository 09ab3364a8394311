#!/usr/bin/env bash
# install.sh BUILD_DIR VERSION: installs into a scratch folder; the program there knows its version
# and accepts the topologies installed beside it, and the manual page and the completions lie where
# man and the shells look for them.
set -euo pipefail
build_dir=$1 version=$2

prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build_dir" --prefix "$prefix" >/dev/null
"$prefix/bin/troupe" --version | grep -F "$version"
# What three_hosts.yaml asks for.
"$prefix/bin/troupe" keygen "$prefix/share/troupe/topologies/keys" 2>/dev/null
# 300 pictures and their labels, which one of them trains on.
pictures="$prefix/share/troupe/topologies/fashion-mnist"
mkdir "$pictures"
{ printf '\0\0\10\3\0\0\1\54\0\0\0\34\0\0\0\34' && head -c 235200 /dev/urandom; } |
  gzip >"$pictures/train-images-idx3-ubyte.gz"
{ printf '\0\0\10\1\0\0\1\54' && head -c 300 /dev/zero; } |
  gzip >"$pictures/train-labels-idx1-ubyte.gz"
for topology in "$prefix"/share/troupe/topologies/*.yaml; do
  "$prefix/bin/troupe" check "$topology" >/dev/null
  echo "accepted ${topology##*/}"
done
for file in man/man1/troupe.1 bash-completion/completions/troupe zsh/site-functions/_troupe \
  fish/vendor_completions.d/troupe.fish; do
  grep -q troupe "$prefix/share/$file"
  echo "found $file"
done
