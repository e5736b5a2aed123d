#!/usr/bin/env bash
# The whole job on this machine, on all cores: see neardup/engines/local/run.py.
set -euo pipefail
export LC_ALL=C OPENBLAS_NUM_THREADS=1 # the work is cut into processes, not threads
[ -e /dev/fd/0 ] || exec </dev/null
[ -e /dev/fd/2 ] && [ ! /dev/fd/2 -ef "${BASH_SOURCE[0]}" ] || exec 2>/dev/null # bash may sit there
[ -e /dev/fd/1 ] || { echo "run_local.sh: standard output is closed" >&2 && exit 1; }

here=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd -P)
python=$here/.venv/bin/python
[ -x "$python" ] || python=python3
export PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH}

exec "$python" "$here/neardup/engines/local/run.py" "$@"
