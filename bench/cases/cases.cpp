// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.hpp"

namespace beeline::bench {

namespace {

std::vector<Case> with(std::vector<Case> cases, const std::vector<Case>& more) {
  cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

}  // namespace

std::vector<Case> primitive_cases(Command command) {
  switch (command) {
    case Command::latency:
      return with(
          {packet_latency(), ll128_latency(), put_signal_latency(), nvshmem_put_signal(), stream_copy_latency(),
           host_copy_latency(), staged_latency(false), staged_latency(true), mpi_staged_latency(), flag_latency(),
           nvshmem_signal(), barrier_latency(), mpi_staged_barrier(), nvshmem_barrier(), send_receive_in_kernel()},
          send_receive_latency());
    case Command::bandwidth:
      return with({packet_bandwidth(), ll128_bandwidth(), put_bandwidth(), bulk_bandwidth(), nvshmem_put(),
                   get_bandwidth(), stream_copy_bandwidth(), host_copy_bandwidth(), staged_bandwidth(false),
                   staged_bandwidth(true), mpi_staged_bandwidth()},
                  send_receive_bandwidth());
    case Command::rate:
      return {packet_rate(),          put_signal_rate(), fetch_add_latency(),     nvshmem_fetch_add(),
              compare_swap_latency(), random_update(),   nvshmem_random_update(), random_store()};
    case Command::address_space:
      return {write_latency(), read_latency(),    store_by_threads(), load_by_threads(),
              bulk_copy(),     store_by_stride(), load_by_stride()};
    default:
      return {};
  }
}

}  // namespace beeline::bench
