# SPDX-License-Identifier: Apache-2.0
# Steps of tools/gpu: the benchmarks.
if wanted latency; then
  record latency 180 "$two" build/bin/beeline-bench latency
  [ "$gpus" -gt 2 ] && record "latency-$gpus" 90 "$gpus" build/bin/beeline-bench latency --sizes 8
fi
if wanted bandwidth; then record bandwidth 280 "$two" build/bin/beeline-bench bandwidth; fi
if wanted rate; then
  record rate 120 "$two" build/bin/beeline-bench rate
  [ "$gpus" -gt 2 ] &&
    record "rate-$gpus" 90 "$gpus" build/bin/beeline-bench rate --operations random_update,random_store
fi
if wanted packets-block; then
  record packets-block 30 "$two" build/bin/beeline-bench latency --operations message --sizes 8 \
    --methods device/peer/ll,device/peer/ll128 --threads-per-block 256
fi
if wanted gaspi-speed; then  # at 64 MB gaspi_gpu_write is compared with the copy engine, which gaspi-copies measures
  record gaspi-kernels 40 "$two" build/bin/beeline-bench latency --operations gaspi_message --sizes 8,4K,64K
  record gaspi-copies 40 "$two" build/bin/beeline-bench bandwidth --operations put --sizes 64M \
    --methods host/copy_engine/signal,stream/copy_engine/signal
  bench gaspi-64M 100 gaspi --ranks "$two" --sizes 64M --turns 1
  bench gaspi 60 gaspi --ranks "$two" --sizes 8,4K,32K,1M --turns 1
  bench gaspi-nodes 60 gaspi --ranks "$two" --split-nodes 2 --sizes 8,32K,1M --turns 1
fi
if wanted address-space; then record address-space 150 "$two" build/bin/beeline-bench address-space; fi
if several operations; then
  for operation in broadcast scatter gather allgather reduce reduce_scatter alltoall alltoallv barrier; do
    collectives "$operation" 90 --operations "$operation" --sizes 8,4K,32K,256K,1M,16M,256M,1G
  done
fi
if several defaults; then
  calls=stream/automatic,graph/automatic,nccl/stream,nccl/graph,nvshmem/graph
  record "defaults-$gpus" 150 "$gpus" build/bin/beeline-bench collectives --methods $calls \
    --operations allreduce,broadcast,reduce,gather,scatter,allgather,reduce_scatter,alltoall,alltoallv \
    --sizes 8,4K,64K,1M,4M,8M,16M,64M,256M,1G
  record "defaults-$gpus-4G" 60 "$gpus" build/bin/beeline-bench collectives --methods $calls \
    --operations allreduce --sizes 4G
fi
if several eager; then
  for run in 1 2 3 4 5; do
    bench "eager-$gpus-$run" 40 calls --ranks "$gpus" --operations allreduce --sizes 4M \
      --methods torch_eager/beeline,torch_eager/nccl
  done
fi
if several collectives; then
  # The limit, the first number, includes 60 s for torch, which is measured last.
  collectives float32 140 --type float32 --sizes 8,4K,128K,1M,16M,256M
  collectives bfloat16 140 --type bfloat16 --sizes 8,8K,128K,1M,4M,16M,64M,256M,1G
fi
if several algorithms; then  # figures 6.16 to 6.18 of seed 000; MPI stages two vectors in that heap
  methods=nccl/stream,mpi/staged
  for name in automatic ll_one_shot ll_two_shot ll128_one_shot ll128_two_shot packets two_shot \
    bulk copy_engine read gather_cast gather allgather alltoall_allgather alltoall_gather tree; do
    methods+=,stream/$name
  done
  BEELINE_PINNED_HEAP_BYTES=256M collectives algorithms 120 --operations allreduce,reduce \
    --sizes 8,1K,8K,64K,512K,4M,16M,64M --methods "$methods"
fi
if several barrier; then collectives barrier 60 --operations barrier; fi
if several copies; then
  collectives copies 90 --operations alltoall --sizes 16M,64M,256M,1G \
    --methods bare/copies,stream/automatic,stream/copy_engine,nccl/stream
fi
if several blocks; then
  collectives blocks 90 --type bfloat16 --sizes 1M,16M,256M --blocks 1,2,4,8,16,32,64 \
    --methods stream/ll128_two_shot,stream/two_shot,stream/bulk,stream/copy_engine,nccl/stream
fi
if wanted accuracy; then
  bench accuracy 120 accuracy --ranks "$([ "$gpus" -gt 2 ] && echo "2,$gpus" || echo "$two")"
fi
if several overlap; then bench overlap 180 overlap --ranks "$gpus"; fi
if several since; then
  [ -n "$against" ] || { echo "gpu: since: needs --against BUILD"; failures=$((failures + 1)); }
  # compare NAME SECONDS RANKS COMMAND...: runs the command from both builds in turn: five rounds, or fewer in SECONDS.
  # Older builds call `ll` and `ll128` packets.
  compare() {
    [ -n "$against" ] && step "since-$1" $(($2 + 60)) tools/compare "$against" build --ranks "$3" --limit 60 \
      --budget "$2" --renamed packets=ll --renamed packets128=ll128 --output "$output/since-$1.jsonl" -- "${@:4}"
  }
  compare latency 90 2 beeline-bench latency --sizes 8,4K
  compare bandwidth 60 2 beeline-bench bandwidth --sizes 64K,64M
  compare rate 60 2 beeline-bench rate --sizes 8
  compare collectives 60 2 beeline-bench collectives --operations allreduce --sizes 8,4K,1M,64M \
    --methods stream/automatic,graph/automatic,nccl/graph
  compare himeno 60 2 himeno --size L --method all
fi
if several joules; then
  for set in default table-002 collectives applications himeno; do
    bench "joules-$set" 480 energy --ranks 2 --set "$set" --budget 240
  done
fi
if wanted objects; then
  bench objects-streaming 60 objects --measurements streaming --sizes 64M
  bench objects-sparse 90 objects --measurements sparse,sequential,first_access --sizes 256M
fi
if wanted floating; then bench floating 120 floating; fi
if wanted files; then  # on this folder's disk; each length by itself, so that a time limit ends the measurement of one
  # files LENGTH SECONDS OPTIONS...: measures transfers between files of this length and the memory of a GPU.
  files() { bench "files-$1" "$2" files --memory device --folder build --sizes "$1" "${@:3}"; }
  compared=hpe/automatic,bare/io_uring,bare/pinned_copy,kvikio
  files 1M 40
  files 16M 60
  files 256M 90 --rounds 2 --methods $compared,hpe/direct
  files 1G 170 --turns 1 --methods $compared,hpe/direct
  files 4G 230 --turns 1 --rounds 1 --states cold,cached,existing,durable --methods $compared
fi
