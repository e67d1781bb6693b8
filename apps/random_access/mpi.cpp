// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method mpi, the baseline: in each round the CPU makes 1,024 numbers, sorts them by owner, and MPI exchanges counts
/// and numbers. Numbers that have arrived are applied while those of the next round are made: by the owner's CPU, or
/// after that by a kernel, to which the CPU copies them. Source: seed 000 section
/// 6.9.3; HPC Challenge, MPI RandomAccess.

#include <algorithm>

#include "common/mpi_session.hpp"
#include "making.hpp"
#include "method.hpp"

namespace random_access {

namespace {

using apps::require_mpi;

class Mpi final : public Method {
 public:
  explicit Mpi(Table& table)
      : Method(table), ranks_(static_cast<std::size_t>(world().size())),
        sent_(world(), ranks_ * box_words, beeline::Heap::pinned),
        received_(world(), ranks_ * look_ahead, beeline::Heap::pinned), arrived_(world(), ranks_ * look_ahead),
        send_counts_(ranks_), receive_counts_(ranks_), send_offsets_(ranks_), receive_offsets_(ranks_), ends_(ranks_) {
    apps::begin_mpi(world());
    for (std::size_t peer = 0; peer < ranks_; ++peer) send_offsets_[peer] = static_cast<int>(peer * box_words);
  }

  void run(const Run& run) override {
    const std::uint32_t ranks = table().layout().ranks;
    const Piece mine = run.of(static_cast<std::uint32_t>(world().rank()), ranks);
    const std::uint64_t rounds = (run.of(0, ranks).count + look_ahead - 1) / look_ahead;  // the same on all ranks
    std::uint64_t number = starts(mine.first), left = mine.count, arrived = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t now = std::min(left, look_ahead);
      number = make_numbers(number, now, arrived);
      left -= now;
      arrived = exchange();
    }
    static_cast<void>(make_numbers(number, 0, arrived));
  }

 private:
  /// Sorts `count` numbers after `number` by owner; returns the last. Applies the `arrived` numbers of the last round.
  std::uint64_t make_numbers(std::uint64_t number, std::uint64_t count, std::uint64_t arrived) {
    const bool is_gpu = world().device().is_gpu();
    for (std::size_t peer = 0; peer < ranks_; ++peer) ends_[peer] = box(peer);
    number = make_and_apply(ends_.data(), table().target(), number, count, {received_.data(), is_gpu ? 0 : arrived});
    for (std::size_t peer = 0; peer < ranks_; ++peer) send_counts_[peer] = static_cast<int>(ends_[peer] - box(peer));
    if (is_gpu) apply_by_gpu(arrived);
    return number;
  }

  /// The numbers for a peer.
  [[nodiscard]] std::uint64_t* box(std::size_t peer) const { return sent_.data() + peer * box_words; }

  /// Returns how many numbers have arrived.
  std::uint64_t exchange() {
    require_mpi(MPI_Alltoall(send_counts_.data(), 1, MPI_INT, receive_counts_.data(), 1, MPI_INT, MPI_COMM_WORLD),
                "MPI_Alltoall");
    int arrived = 0;
    for (std::size_t peer = 0; peer < ranks_; ++peer) {
      receive_offsets_[peer] = arrived;
      arrived += receive_counts_[peer];
    }
    require_mpi(MPI_Alltoallv(sent_.data(), send_counts_.data(), send_offsets_.data(), MPI_UINT64_T, received_.data(),
                              receive_counts_.data(), receive_offsets_.data(), MPI_UINT64_T, MPI_COMM_WORLD),
                "MPI_Alltoallv");
    return static_cast<std::uint64_t>(arrived);
  }

  void apply_by_gpu(std::uint64_t count) {
    if (count == 0) return;
    world().copy(arrived_.data(), received_.data(), count * sizeof(std::uint64_t), world().stream());
    table().enqueue_updates(arrived_.data(), count);
    world().synchronize();
  }

  const std::size_t ranks_;
  beeline::SymmetricArray<std::uint64_t> sent_;      ///< [ranks, box_words] in host memory
  beeline::SymmetricArray<std::uint64_t> received_;  ///< [ranks, look_ahead] in host memory
  beeline::SymmetricArray<std::uint64_t> arrived_;   ///< [ranks, look_ahead] in the device's memory
  std::vector<int> send_counts_, receive_counts_, send_offsets_, receive_offsets_;
  std::vector<std::uint64_t*> ends_;  ///< [ranks] where the next number for each owner is stored
};

}  // namespace

std::unique_ptr<Method> make_mpi(Table& table) { return std::make_unique<Mpi>(table); }

std::string why_no_mpi(const beeline::Config& config) {
  return config.launcher.name == "mpirun" ? "" : "its ranks are started by mpirun, these were not";
}

void finish_mpi() { apps::end_mpi(); }

}  // namespace random_access
