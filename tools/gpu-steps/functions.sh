# SPDX-License-Identifier: Apache-2.0
# Functions that the steps of tools/gpu share.
wanted() { [[ ",$steps," == *",$1,"* ]]; }

# follow NAME FILE: every 15 s, prints a step's progress: the last line of its output. Sets `follower`.
follow() {
  local name=$1 file=$2 start=$SECONDS
  while sleep 15 >/dev/null 2>&1; do  # which must not keep this output open
    echo "gpu: $name: $((SECONDS - start)) s:" \
      "$(tail -c 4000 "$file" 2>/dev/null | tr '\r' '\n' | tail -n 1 | cut -c 1-150)"
  done &
  follower=$!
}
end_follower() {
  kill "$follower"
  wait "$follower" 2>/dev/null
}

# step NAME SECONDS COMMAND...: runs it with a limit, keeps its output in NAME.log, prints its progress and its outcome.
step() {
  local name=$1 limit=$2 start=$SECONDS
  shift 2
  echo "gpu: $name: at most $limit s ..."
  follow "$name" "$output/$name.log"
  timeout -k 5 "$limit" "$@" >"$output/$name.log" 2>&1
  local rc=$?
  end_follower
  echo "gpu: $name: $([ $rc = 0 ] && echo ok || echo "FAILED ($rc)") in $((SECONDS - start)) s"
  [ $rc = 0 ] || { failures=$((failures + 1)); tail -n 25 "$output/$name.log"; }
  return $rc
}

# record NAME SECONDS RANKS ARGUMENTS...: runs a program under the launcher, keeps its JSON lines in NAME.jsonl.
record() {
  local name=$1 limit=$2 ranks=$3 start=$SECONDS
  shift 3
  echo "gpu: $name: at most $limit s ..."
  follow "$name" "$output/$name.jsonl"
  timeout -k 5 "$limit" build/bin/beeline-launch -n "$ranks" "${launched[@]}" --json -- "$@" \
    >"$output/$name.jsonl" 2>"$output/$name.log"
  local rc=$?
  end_follower
  sed -i '/"event":"progress"/d' "$output/$name.jsonl"
  echo "gpu: $name: $([ $rc = 0 ] && echo ok || echo "FAILED ($rc)") in $((SECONDS - start)) s"
  [ $rc = 0 ] || { failures=$((failures + 1)); tail -n 25 "$output/$name.log"; }
}

python=.venv/bin/python  # made by tools/setup, with python3's packages: torch and numpy, if it has them
# bench NAME SECONDS ARGUMENTS...: runs `beeline bench`, which also measures through torch; keeps NAME.jsonl.
bench() { command_line "$1" "$2" bench "${@:3}"; }
# command_line NAME SECONDS ARGUMENTS...: runs `beeline ARGUMENTS`; keeps NAME.jsonl.
command_line() {
  local name=$1 limit=$2
  shift 2
  rm -f "$output/$name.jsonl"
  step "$name" "$limit" "$python" -m beeline "$@" --output "$output/$name.jsonl"
}
# collectives NAME SECONDS ARGUMENTS...: compares with all peers, torch's symmetric memory last; also draws the results.
collectives() {
  local name=collectives-$gpus-$1 limit=$2
  shift 2
  bench "$name" "$limit" collectives --ranks "$gpus" "$@"
  [ "${1:-}" = --operations ] && [ "$2" = barrier ] && return  # it has no curve
  "$python" -m beeline plot "$output/$name.jsonl" -o "$output/$name.svg" 2>&1 | sed "s/^/gpu: $name: /"
}
# several NAME: whether the step is wanted, and there is a second GPU.
several() {
  wanted "$1" || return 1
  [ "$gpus" -ge 2 ] || { echo "gpu: $1: skipped: needs two GPUs"; return 1; }
}
# passed NAME: whether any case of that step passed.
passed() {
  grep -q '\[  PASSED  \] [1-9]' "$output/$1.log" && return
  failures=$((failures + 1))
  echo "gpu: $1: no case passed"
}
