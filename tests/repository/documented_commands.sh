#!/usr/bin/env bash
# documented_commands.sh SOURCE_DIR TROUPE FILE.md: runs every ```sh block of the file, top to
# bottom in one shell, in a scratch folder that looks like the repository after a build: config/ is
# there, `troupe` is on the PATH and at build/release/troupe. Lines that begin with ./dev, git clone
# or cd are left out: continuous integration is their test. Commands stand in ```sh blocks and
# nowhere else, so that none escapes.
set -euo pipefail
source_dir=$1 troupe=$2 document=$3

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin" "$scratch/tree/build/release"
ln -s "$troupe" "$scratch/bin/troupe"
ln -s "$troupe" "$scratch/tree/build/release/troupe"
ln -s "$source_dir/config" "$scratch/tree/config"

# The script keeps the document's line numbers, so that a failure names the line in the document.
awk -v document="$document" '
  function refuse(problem) {
    printf "%s:%d: %s\n", document, FNR, problem > "/dev/stderr"
    exit 1
  }
  /^ *```/ {
    language = $0
    sub(/^ *```/, "", language)
    inside = !inside
    if (inside && language == "") refuse("a block needs a language")
    print ""
    next
  }
  inside && language != "sh" && /^ *(\$ *)?(\.\/dev|troupe|build\/release\/troupe) / {
    refuse("a command outside a ```sh block escapes the test")
  }
  inside && language == "sh" && !/^ *(\.\/dev|git clone|cd) / { print; next }
  { print "" }
' "$document" >"$scratch/commands"

cd "$scratch/tree"
PATH=$scratch/bin:$PATH DOCUMENT=$document bash -c '
  set -Eeuo pipefail
  trap '\''echo "$DOCUMENT:$LINENO: failed: $BASH_COMMAND" >&2'\'' ERR
  source "$1"' documented_commands "$scratch/commands"
echo "$document: its commands work"
