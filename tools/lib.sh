# SPDX-License-Identifier: Apache-2.0
# Functions and settings that the commands in this folder share. Sourcing it changes to the repository's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

# The CUDA compiler is used if it is installed, even if it is not on PATH.
if ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then export PATH=$PATH:/usr/local/cuda/bin; fi

say() { printf '%s\n' "$*"; }

fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# Reads a command's output, and shows its progress: by the last counter in it ("[12/34]" of ninja, "12/34 Test" of
# ctest, the steps of apt-get), or else by the time and the last line. On a terminal one line changes in place;
# elsewhere, and with BEELINE_PROGRESS=lines, it prints a line every PROGRESS_SECONDS, even if the command prints none.
PROGRESS_SECONDS=15
show_counter() {
  local label=$1 start=$SECONDS said=$SECONDS in_place=no line="" part status counter="" last="" steps=0 all=0
  if [ -t 2 ] && [ "${BEELINE_PROGRESS:-}" != lines ]; then in_place=yes; fi
  while :; do
    status=0
    IFS= read -r -t 1 part || status=$?
    line+=$part
    if [ "$status" = 0 ]; then
      if [ -n "$line" ]; then last=$line; fi
      count_steps
      line=""
    elif [ "$status" -le 128 ]; then  # the end of the output; above: a second without a whole line
      break
    fi
    if [ "$in_place" = yes ]; then
      printf '\r\033[K%.*s' "$((${COLUMNS:-80} - 1))" "$label: ${counter:-$((SECONDS - start)) s, $last}" >&2
    elif [ $((SECONDS - said)) -ge "$PROGRESS_SECONDS" ]; then
      said=$SECONDS
      printf '%.100s\n' "$label: ${counter:-$((SECONDS - start)) s, $last}" >&2
    fi
  done
  if [ "$in_place" = yes ]; then printf '\r\033[K' >&2; fi
}

# Used by show_counter: reads the counter in `line`. apt-get fetches, unpacks and sets up each package.
count_steps() {
  if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] || $line =~ ^\ *([0-9]+)/([0-9]+)\ Test ]]; then
    counter="${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
  elif [[ $line =~ ^([0-9]+)\ upgraded,\ ([0-9]+)\ newly\ installed ]]; then
    all=$((3 * (BASH_REMATCH[1] + BASH_REMATCH[2])))
  elif [ "$all" -gt 0 ] && [[ $line =~ ^(Get:|Unpacking\ |Setting\ up\ ) ]]; then
    steps=$((steps + 1))
    counter="$steps of $all"
  fi
}

# run_logged LABEL LOG COMMAND...: runs COMMAND with its output in LOG, and shows its progress; returns its status.
run_logged() {
  local label=$1 log=$2 status=0
  shift 2
  mkdir -p "$(dirname "$log")"
  "$@" 2>&1 </dev/null | tee "$log" | show_counter "$label" || status=${PIPESTATUS[0]}
  return "$status"
}

# Shows the part of LOG with the error: from the first failed step of ninja, otherwise the end.
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
