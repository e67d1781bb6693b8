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

# Reads a command's output, and says how far it is by its counter ("[12/34]" of ninja, "12/34 Test" of ctest): on a
# terminal as one line that changes; elsewhere, and with BEELINE_PROGRESS=lines, as a line every PROGRESS_SECONDS.
PROGRESS_SECONDS=15
show_counter() {
  local label=$1 line said=$SECONDS in_place=no
  if [ -t 2 ] && [ "${BEELINE_PROGRESS:-}" != lines ]; then in_place=yes; fi
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] || $line =~ ^\ *([0-9]+)/([0-9]+)\ Test ]] || continue
    if [ "$in_place" = yes ]; then
      printf '\r\033[K%s: %s' "$label" "${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}" >&2
    elif [ $((SECONDS - said)) -ge "$PROGRESS_SECONDS" ]; then
      said=$SECONDS
      say "$label: ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}" >&2
    fi
  done
  if [ "$in_place" = yes ]; then printf '\r\033[K' >&2; fi
}

# run_logged LABEL LOG COMMAND...: runs COMMAND with its output in LOG, and says how far it is; returns its status.
run_logged() {
  local label=$1 log=$2 status=0
  shift 2
  mkdir -p "$(dirname "$log")"
  "$@" 2>&1 </dev/null | tee "$log" | show_counter "$label" || status=${PIPESTATUS[0]}
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
