#!/usr/bin/env bash
# The job on Spark: ./run_spark.sh [OPTIONS] INPUT… OUTPUT; --help tells more.
set -euo pipefail
here=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd -P)
python=$here/.venv/bin/python
[ -x "$python" ] || python=python3
exec "$python" "$here/neardup/engines/spark/spark_submit.py" "$@"
