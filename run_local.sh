#!/usr/bin/env bash
# The whole job on this machine: map, shuffle, reduce, and the pairs merged, on all cores.
#
#   files ─┬─ mapper 0 ─┬─ map.0.0 ──┬─ sort ─ reducer 0 ─┬─ sort ─ dedup_reducer ─ pairs
#          └─ mapper 1 ─┴─ map.0.1 … └─ sort ─ reducer 1 ─┘
#
# As on a cluster, each mapper keeps one file for each reducer, and a sort brings equal keys
# together.  The mappers run twice: first to count keys, then to send records for shared keys only
# (neardup/sieve.py).  Everything temporary lies in one folder below TMPDIR, which goes away
# however this ends.
set -euo pipefail
set -m # every background job is a process group of its own, and can be ended as one
export LC_ALL=C

here=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd -P)
python=$here/.venv/bin/python
[ -x "$python" ] || python=python3
export PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH}

work=$(mktemp -d "${TMPDIR:-/tmp}/neardup.XXXXXXXX")
finish() {
  local code=$?
  trap - EXIT
  trap '' INT TERM HUP
  for group in $(jobs -p); do kill -- "-$group" 2>/dev/null || true; done
  wait
  rm -rf -- "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# Wait for so many background jobs; the first that fails fails the whole.
together() {
  for ((n = 0; n < $1; n++)); do wait -n || exit; done
}

"$python" -m neardup.local_plan "$work/plan" "$@"
[ -e "$work/plan" ] || exit 0 # it was asked for help
mapfile -d '' -t plan <"$work/plan"
jobs=${plan[0]} memory=${plan[1]}
options=("${plan[@]:3:plan[2]}")
files=("${plan[@]:3+plan[2]}")

mkdir "$work/reports"
export NEARDUP_REPORT=$work/reports
stdin=/dev/null
for file in "${files[@]}"; do
  if [ "$file" = - ]; then # every mapper reads all files, so this one has to stay
    stdin=$work/stdin
    cat >"$stdin"
  fi
done

mapper() { # PASS WORKER ARGUMENT…
  "$python" -m neardup.local_mapper "$1" "$2/$jobs" "${@:3}" "${options[@]}" -- "${files[@]}" <"$stdin"
}
shuffle() {
  sort -S "$memory" --parallel="$jobs" -T "$work" -- "$@"
}
reduce() {
  shuffle "$work"/map.*."$1" | "$python" "$here/reducer.py" "${options[@]}" >"$work/pairs.$1"
}

for ((k = 0; k < jobs; k++)); do mapper count "$k" "$work/keys.$k" & done
together "$jobs"
"$python" -m neardup.sieve "$work/sieve" "$work"
rm -- "$work"/keys.*
for ((k = 0; k < jobs; k++)); do mapper send "$k" "$work/map.$k" --sieve "$work/sieve" & done
together "$jobs"
for ((r = 0; r < jobs; r++)); do reduce "$r" & done
together "$jobs"
shuffle "$work"/pairs.* >"$work/pairs"
"$python" "$here/dedup_reducer.py" <"$work/pairs"
"$python" -m neardup.summary "$work/reports"
