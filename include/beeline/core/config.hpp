// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The configuration: one struct, read once from `BEELINE_*`, printed by `beeline info settings`.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "beeline/core/launcher.hpp"
#include "beeline/core/log.hpp"
#include "beeline/core/version.hpp"
#include "beeline/core/wait_policy.hpp"

namespace beeline {

class EngineMaker;

/// Selects the long contiguous puts to other nodes that UCX writes to the target's memory by a memory key. Other puts
/// are messages, which the target's CPU carries out (docs/network.md).
enum class MemoryKeys {
  automatic,  ///< puts of 64 KiB and more, if the connection has native remote memory access
  always,     ///< all puts with a payload, on any connection: for tests
  never
};

/// The path of long payloads between GPU memory and ranks of other nodes (docs/network.md).
enum class GpuPayloads {
  staged,  ///< the rank's GPU copies payloads to and from buffers in host memory, which UCX transfers
  ucx      ///< UCX reads and writes GPU memory, by its CUDA transports
};

/// All settings: the environment variables, and `engines`, which only a program can set. Programs may change fields
/// before they make a world.
struct Config {
  Launcher launcher;            ///< what started this process; torchrun, mpirun or srun give rank and size
  int rank = 0;                 ///< BEELINE_RANK: this process's rank
  int size = 1;                 ///< BEELINE_SIZE: ranks in the world
  bool threads = false;         ///< BEELINE_THREADS: all ranks are threads of this process
  std::string rendezvous;       ///< BEELINE_RENDEZVOUS: host:port of the launcher's server
  std::string token;            ///< BEELINE_TOKEN: the world's secret, never printed
  bool secure = false;          ///< BEELINE_SECURE: 1: connections are encrypted, and need the token
  std::string device = "auto";  ///< BEELINE_DEVICE: auto, cpu, cuda:ID[,ID...], or a list with one of these for each
                                ///< rank
  std::int64_t deadline_ns = 30'000'000'000;  ///< BEELINE_DEADLINE_S: limit of every wait; the variable has seconds
  std::int64_t stream_deadline_ns = 600'000'000'000;  ///< BEELINE_STREAM_DEADLINE_S: the host's limit for a stream
  /// BEELINE_HEAP_BYTES: symmetric heap of a rank; 0: 1 GiB if all ranks have GPUs, otherwise 256 MiB
  std::size_t heap_bytes = 0;
  std::size_t pinned_heap_bytes = std::size_t{64} << 20;  ///< BEELINE_PINNED_HEAP_BYTES: host-memory heap of a rank
  std::uint32_t slot_shift = 38;  ///< BEELINE_SLOT_SHIFT: log2 of a rank's slot in the address range, 32 to 40; raised
                                  ///< for larger heaps; of more than 64 ranks at most 46 - log2 of their number
  std::size_t chunk_bytes = std::size_t{4} << 20;  ///< BEELINE_CHUNK_BYTES: chunk of staged, pipelined transfers
  /// BEELINE_HYBRID_THRESHOLD_BYTES: bytes that `HybridTransfers` move directly at most; 0: it depends on the path
  std::size_t hybrid_threshold_bytes = 0;
  std::size_t hybrid_chunk_bytes = std::size_t{2} << 20;  ///< BEELINE_HYBRID_CHUNK_BYTES: their largest chunk
  int hybrid_chunks = 4;                                  ///< BEELINE_HYBRID_CHUNKS: their chunks in flight, 1 to 64
  bool peer_access = true;  ///< BEELINE_PEER_ACCESS: 0: copies are staged, as without peer access
  int split_nodes = 1;  ///< BEELINE_SPLIT_NODES: nodes into which each machine is split, by blocks of ranks, 1 to 1024
  /// BEELINE_TRANSPORTS: transports between nodes, in order of preference, each with settings: ucx,sockets:delay_us=100
  /// (`beeline info` lists them). A pair of ranks uses the first transport in the lower rank's list that both ranks
  /// have. Empty: the first transport that this build has
  std::string transports;
  GpuPayloads gpu_payloads = GpuPayloads::staged;  ///< BEELINE_GPU_PAYLOADS: staged, ucx
  MemoryKeys memory_keys = MemoryKeys::automatic;  ///< BEELINE_MEMORY_KEYS: automatic, always, never
  WaitPolicy wait_policy = WaitPolicy::automatic;  ///< BEELINE_WAIT_POLICY: automatic, spin, yield, sleep, event
  int wait_period_us = 50;                         ///< BEELINE_WAIT_PERIOD_US: sleep between two polls, 1 to 1000000
  int engine_threads = 1;         ///< BEELINE_ENGINE_THREADS: threads of a rank that serve command queues, 1 to 8
  int engine_poll_us = 100;       ///< BEELINE_ENGINE_POLL_US: sleep between two polls of an idle engine thread; 0: it
                                  ///< spins
  bool check = false;             ///< BEELINE_CHECK: 1: CPU threads warn of signals that repeat a value
  bool cpu_stores = true;         ///< BEELINE_CPU_STORES: 0: engine threads do not store into GPU memory themselves
  std::vector<int> engine_cores;  ///< BEELINE_ENGINE_CORES: cores of engine threads, in turn, as in 0,2; empty: cores
                                  ///< near the GPU
  int host_threads = 1;           ///< BEELINE_HOST_THREADS: CPU threads that run one block on a host rank
  std::string powercap = "/sys/class/powercap";  ///< BEELINE_POWERCAP: folder of the kernel's energy counters
  LogLevel log_level = LogLevel::warning;        ///< BEELINE_LOG: error, warning, info, debug
  /// Makes the engine for peers that loads and stores do not reach; nullptr: a transport serves peers on other nodes,
  /// and peers of the same node have no engine.
  std::shared_ptr<const EngineMaker> engines;

  /// Reads the environment. Throws `invalid_argument`, with the variable's name and value, if a value does not parse;
  /// `unavailable` if headers and library differ in version.
  [[nodiscard]] static Config from_environment(Version headers = detail::version_of({sizeof(Config)}));
};

/// One setting as text: the variable, its value in force, the valid values, and what it means.
struct ConfigEntry {
  std::string variable, value, values, meaning;
};

/// Every setting of `config`, for display. The token is shown as set or unset only.
[[nodiscard]] std::vector<ConfigEntry> describe(const Config& config);

/// A warning for each variable that begins with BEELINE_ and that no part of Beeline reads, with the most similar name
/// that `Config` reads.
///   entries  as in `environ`: NAME=VALUE, the last entry is followed by nullptr
[[nodiscard]] std::vector<std::string> unknown_variables(const char* const* entries);

}  // namespace beeline
