# SPDX-License-Identifier: Apache-2.0
# Steps of tools/gpu: the applications, and ranks on several nodes.
if wanted reductions; then
  for ranks in 1 "$gpus"; do
    record "ring-reduction-$ranks" 60 "$ranks" build/bin/ring-reduction
    command_line "global-reduction-$ranks" 90 app global-reduction --ranks "$ranks" --mpirun
    [ "$gpus" -gt 1 ] || break
  done
fi
if wanted random_access; then
  for ranks in 1 2 4; do
    [ "$ranks" -le "$gpus" ] || continue
    command_line "random-access-$ranks" 90 app random-access --ranks "$ranks" --words 256M --weak --mpirun
  done
fi
if wanted breadth_first; then
  for ranks in 1 2 4; do
    [ "$ranks" -le "$gpus" ] || continue
    record "breadth-first-22-$ranks" 60 "$ranks" build/bin/breadth-first --scale 22 --roots 16 --validate
    for scale in 24 26; do
      record "breadth-first-$scale-$ranks" 60 "$ranks" build/bin/breadth-first --scale "$scale" --method bitmap \
        --no-verify --energy 0.3
    done
  done
fi
if wanted spin_glass; then
  for ranks in 1 2 4; do
    [ "$ranks" -le "$gpus" ] || continue
    command_line "spin-glass-$ranks" 120 app spin-glass --ranks "$ranks" --size 256,512
  done
fi
if wanted jacobi; then
  for ranks in 1 "$gpus"; do
    record "jacobi-$ranks" 60 "$ranks" build/bin/jacobi
    [ "$gpus" -gt 1 ] || break
  done
fi
if wanted himeno; then
  for ranks in 1 2 4; do
    [ "$ranks" -le "$gpus" ] || continue
    record "himeno-L-$ranks" 90 "$ranks" build/bin/himeno --size L --method all
    record "himeno-device-launched-L-$ranks" 60 "$ranks" build/bin/himeno-device-launched --size L
  done
fi
if wanted devices; then  # of one process, without ranks
  launched=(--threads)
  for devices in 1 2 4; do
    [ "$devices" -le "$gpus" ] || continue
    record "stencil-$devices" 90 "$devices" build/bin/stencil --size 256x256x256,512x512x256,768x768x256
    record "merge-sort-$devices" 60 "$devices" build/bin/merge-sort --keys 32M,256M
  done
  launched=()
fi
if several training; then  # data-parallel, in turns with NCCL: each round ends with a record of its own
  for round in 1 2 3 4 5 6 7 8 9; do
    step "training-$round" 60 build/bin/beeline-launch -n "$gpus" --json -- "$python" apps/training/main.py \
      --model transformer --steps 30 --backend "$([ $((round % 2)) = 1 ] && echo beeline,nccl || echo nccl,beeline)"
    mv "$output/training-$round.log" "$output/training-$round.jsonl"
  done
fi
if several nodes; then  # the GPUs of this machine as two nodes, and as a node each
  for nodes in 2 "$gpus"; do
    launched=(--split-nodes "$nodes")
    record "nodes-$nodes-bandwidth" 60 "$gpus" build/bin/beeline-bench bandwidth --sizes 64K,1M,64M
    record "nodes-$nodes-collectives" 60 "$gpus" build/bin/beeline-bench collectives --sizes 8,64K,16M \
      --operations allreduce,broadcast,allgather,alltoall --methods stream/automatic
    record "nodes-$nodes-himeno" 60 "$gpus" build/bin/himeno --size M --method all
    record "nodes-$nodes-jacobi" 60 "$gpus" build/bin/jacobi
    launched=()
    [ "$gpus" -gt 2 ] || break
  done
fi
