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
export LC_ALL=C
[ -e /dev/fd/0 ] || exec </dev/null
[ -e /dev/fd/2 ] && [ ! /dev/fd/2 -ef "${BASH_SOURCE[0]}" ] || exec 2>/dev/null # bash may sit there
[ -e /dev/fd/1 ] || { echo "run_local.sh: standard output is closed" >&2 && exit 1; }

here=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd -P)
python=$here/.venv/bin/python
[ -x "$python" ] || python=python3
export PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH}

work=$(mktemp -d "${TMPDIR:-/tmp}/neardup.XXXXXXXX")
finish() {
  local code=$?
  trap '' EXIT INT TERM HUP
  kill $(jobs -p) 2>/dev/null || true
  wait
  rm -rf -- "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# Every program runs in the background, as a child of this shell, so that a signal can end it.
# Wait for so many of them; the first that fails fails the whole.
together() {
  for ((n = 0; n < $1; n++)); do wait -n || exit 1; done
}
python() {
  trap '' INT # Ctrl-C is for this shell, which ends the others
  exec "$python" "$@"
}

python "$here/neardup/local_plan.py" "$work/plan" "$@" &
wait $! || exit
[ -e "$work/plan" ] || exit 0 # it was asked for help
mapfile -d '' -t plan <"$work/plan"
jobs=${plan[0]} memory=${plan[1]}
options=("${plan[@]:3:plan[2]}")
files=("${plan[@]:3+plan[2]}")

mkdir "$work/reports"
export NEARDUP_REPORT=$work/reports
stdin=/dev/null
for i in "${!files[@]}"; do # every mapper reads all files, so those that can be read once are kept
  file=${files[i]}
  if [ "$file" = - ]; then
    stdin=$work/stdin
    cat <&0 >"$stdin" &
    together 1
  elif [ ! -f "$file" ]; then
    cat -- "$file" <&0 >"$work/pipe.$i" &
    together 1
    files[i]=$work/pipe.$i
  fi
done

mapper() { # PASS WORKER PREFIX …
  export NEARDUP_WORKER="$(($2 + 1)) of $jobs"
  python "$here/neardup/local_mapper.py" "$1" "$2/$jobs" "${@:3}" "${options[@]}" -- "${files[@]}" <"$stdin"
}
shuffle() { # FILE …
  trap '' INT
  exec sort -S "$memory" --parallel="$jobs" -T "$work" -- "$@"
}

for ((k = 0; k < jobs; k++)); do mapper count "$k" "$work/keys.$k" & done
together "$jobs"
python "$here/neardup/sieve.py" "$work/sieve" "$work" &
together 1
rm -- "$work"/keys.*
for ((k = 0; k < jobs; k++)); do mapper send "$k" "$work/map.$k" --sieve "$work/sieve" & done
together "$jobs"

for ((r = 0; r < jobs; r++)); do
  mkfifo "$work/sorted.$r"
  shuffle "$work"/map.*."$r" >"$work/sorted.$r" &
  NEARDUP_WORKER="$((r + 1)) of $jobs" \
    python "$here/reducer.py" "${options[@]}" <"$work/sorted.$r" >"$work/pairs.$r" &
done
together $((2 * jobs))

shuffle "$work"/pairs.* >"$work/pairs" &
together 1
python "$here/dedup_reducer.py" <"$work/pairs" &
together 1
python "$here/neardup/summary.py" "$work/reports" &
together 1
