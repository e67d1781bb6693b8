# SPDX-License-Identifier: Apache-2.0
# What the commands in this folder share. Sourcing it changes to the repository's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

# The CUDA compiler is used wherever it is, also when it is not on PATH.
if ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then export PATH=$PATH:/usr/local/cuda/bin; fi

say() { printf '%s\n' "$*"; }

fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# Reads a command's output, and shows its counter ("[12/34]" of ninja, "12/34 Test" of ctest) as one short line.
show_counter() {
  local label=$1 line
  while IFS= read -r line; do
    if [[ $line =~ ^\[([0-9]+/[0-9]+)\] || $line =~ ^\ *([0-9]+/[0-9]+)\ Test ]]; then
      printf '\r\033[K%s: %s' "$label" "${BASH_REMATCH[1]}" >&2
    fi
  done
  printf '\r\033[K' >&2
}

# run_logged LABEL LOG COMMAND...: runs COMMAND with its output in LOG; returns its status.
run_logged() {
  local label=$1 log=$2 status=0
  shift 2
  mkdir -p "$(dirname "$log")"
  if [ -t 2 ]; then
    "$@" 2>&1 </dev/null | tee "$log" | show_counter "$label" || status=${PIPESTATUS[0]}
  else
    "$@" >"$log" 2>&1 </dev/null || status=$?
  fi
  return "$status"
}

# Shows where LOG tells what went wrong: from the first failed step of ninja, otherwise its end.
show_failure() {
  local log=$1
  {
    if grep -q '^FAILED: ' "$log"; then
      sed -n '/^FAILED: /,$p' "$log" | head -n 80
    else
      tail -n 60 "$log"
    fi
    say "(full log: $log)"
  } >&2
}
