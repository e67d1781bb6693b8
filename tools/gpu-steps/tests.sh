# SPDX-License-Identifier: Apache-2.0
# Steps of tools/gpu: tests of each part of the library, and of some under compute-sanitizer.
# ctests NAME SECONDS PARALLEL OPTIONS...: runs tests by ctest, which ends at the limit, so that the report counts those
# that have run. Those that failed run again, each alone: the log tells which fail only beside others.
ctests() {
  local name=$1 limit=$2
  local run=(ctest --test-dir build --output-on-failure --timeout 60)
  step "$name" "$((limit + 10))" "${run[@]}" --parallel "$3" "${@:4}" --stop-time "$(date -d "$limit seconds" +%T)" \
    --output-junit "$(realpath "$output")/tests/$name.xml" || step "$name-alone" 60 "${run[@]}" --rerun-failed
}
# Tests that name a GPU come first. Each takes a second to start, so four run at the same time. What CI runs, too, comes
# last. The paths after the loss of a node have a step of their own (survivors).
if wanted test; then
  rm -rf build/suites
  ln -sfn "$PWD/build/suites" "$output/tests/suites"  # where tools/summary finds the cases of a suite
  on_gpus='[gG][pP][uU]|[cC]uda|device|vulkan|early_start|caller_check|profiler'
  left_out='compile|misuse|header|LostNode.*OnGpus'
  ctests test-gpus 240 4 -R "$on_gpus" -E "$left_out"
  ctests test-others 120 "$((($(nproc) + 1) / 2))" -E "$left_out|$on_gpus"
fi
# cases NAME SECONDS FILTER PROGRAM...: runs the cases of FILTER on GPUs, in each program; the report counts them.
cases() {
  local name=$1 limit=$2 filter=$3 program
  for program in "${@:4}"; do
    step "$name-$program" "$limit" "build/bin/$program" --gtest_filter="$filter" \
      --gtest_output="xml:$output/tests/$name-$program.xml"
  done
}
conformance=(conformance_threads_test conformance_processes_test)
if wanted tasks; then cases tasks 90 '*gpu*.*task*' "${conformance[@]}"; fi
if wanted triggers; then cases triggers 90 '*gpu*.*trigger*' "${conformance[@]}"; fi
# Commands that device engines carry out, or forward.
if wanted posts; then cases posts 120 '*gpu*.*_by_device' "${conformance[@]}"; fi
if wanted network; then cases network 120 '*gpu*_nodes*.*' "${conformance[@]}" collectives_test messages_test; fi
if wanted gaspi; then  # kernels' calls in worlds of each kind, segments in GPU memory
  cases gaspi 120 '*gpu*.*gaspi*' "${conformance[@]}"
  cases gaspi 120 '*' gaspi_test
  for nodes in 1 2; do
    step "gaspi-example-$nodes" 40 build/bin/beeline-launch -n "$two" --split-nodes "$nodes" -- \
      build/bin/example_gaspi_gpu
  done
fi
# Each suite in a process of its own, since a kernel's fault ends CUDA in its process.
if wanted hpe; then
  suites=$(build/bin/hpe_test --gtest_list_tests | sed -n 's|^\([A-Za-z0-9/_]*\)\..*|\1|p' | sort -u)
  [ -n "$suites" ] || { echo "gpu: hpe: no case"; failures=$((failures + 1)); }
  for suite in $suites; do
    step "hpe-${suite//\//-}" 60 build/bin/hpe_test --gtest_filter="$suite.*" \
      --gtest_output="xml:$output/tests/hpe-${suite//\//-}.xml"
  done
fi
# Atomics that ranks of several GPUs post on the same words of host memory.
if wanted atomics; then cases atomics 60 '*gpu*.*one_word_of_all_ranks*:*gpu*.*rma_locks*' "${conformance[@]}"; fi
# Every path of GPU ranks after the loss of a node by each fault.
if wanted survivors; then
  BEELINE_TEST_REPETITIONS=1 BEELINE_LOG=info cases survivors 500 'While/LostNode.TheOthersGoOn/*OnGpus' fault_test
fi
# python_tests NAME SECONDS FILE...: runs pytest on the files; the report counts their tests.
python_tests() {
  step "$1" "$2" "$python" -m pytest -q -p no:cacheprovider --junitxml "$output/tests/$1.xml" "${@:3}"
}
if wanted torch; then
  python_tests torch 240 tests/python/test_torch_{backend,native,tensors}.py \
    tests/python/test_{gpu_tensors,memory_pool}.py
fi
if wanted energy; then python_tests energy 120 tests/python/test_energy.py tests/python/test_bench_energy.py; fi
if wanted repeats; then  # four ranks as threads and as processes, twenty worlds each
  for kind in threads processes; do
    step "repeats-$kind" 120 build/bin/collectives_test --gtest_repeat=20 \
      --gtest_filter="${kind}_${gpus}_gpus.*named_reductions*"
    passed "repeats-$kind"
  done
fi
if wanted cpu-stores; then
  for program in conformance_threads_test conformance_processes_test; do
    BEELINE_CPU_STORES=0 step "cpu-stores-$program" 90 "build/bin/$program" \
      --gtest_filter='*gpu*.*_by_host:*gpu*.*_by_engine'
    passed "cpu-stores-$program"
  done
fi
# sanitize NAME TOOL SECONDS PROGRAM SHAPE PARTS: the cases of a shape of world whose names have one of the PARTS, under
# a tool of compute-sanitizer, with deadlines for kernels that run slowly.
sanitize() {
  local name=$1 tool=$2 limit=$3 program=$4 shape=$5 part filter= options=()
  for part in ${6//,/ }; do filter+="$shape.*$part*:"; done
  [ "$tool" = memcheck ] && options=(--report-api-errors no)  # the tests include calls that the driver refuses
  BEELINE_DEADLINE_S=60 step "$name" "$limit" compute-sanitizer --tool "$tool" --target-processes all \
    "${options[@]}" --error-exitcode 99 "build/bin/$program" --gtest_filter="$filter"
  passed "$name"
}
# sanitizes TOOL: whether the step is wanted, and the tool is here.
sanitizes() {
  wanted "$1" || return 1
  command -v compute-sanitizer >/dev/null || { echo "gpu: $1: skipped: compute-sanitizer is not on PATH"; return 1; }
}
accesses=put_and_announce,put_scalars,get_slices,add_to_a_signal,every_atomic,barrier,packet
members=vectors_that_lie_unlike,movement_between_unlike,named_reductions_that_lie_unlike
if sanitizes memcheck; then
  # Atomics of one GPU on host memory are allowed; the tool refuses them if a CPU could not take part.
  sanitize memcheck memcheck 75 conformance_threads_test threads_1_gpus "${accesses/,every_atomic/}"
  sanitize memcheck-bulk memcheck 60 conformance_threads_test threads_1_gpus bulk,strided
  if [ "$gpus" -gt 1 ]; then
    sanitize memcheck-2 memcheck 75 conformance_processes_test processes_2_gpus "$accesses,bulk_rounds,strided"
    sanitize memcheck-collectives memcheck 60 collectives_test processes_2_gpus "$members"
    sanitize memcheck-messages memcheck 45 messages_test processes_2_gpus messages_by_two_calls,messages_keep
  fi
fi
# Hazards of shared memory, and barriers that some threads do not reach: in bulk transfers, and in groups that meet.
for tool in racecheck synccheck; do
  if sanitizes "$tool"; then
    sanitize "$tool" "$tool" 45 conformance_threads_test threads_1_gpus bulk,strided,barrier,packet
    [ "$gpus" -gt 1 ] && sanitize "$tool-collectives" "$tool" 45 collectives_test processes_2_gpus "$members"
  fi
done
