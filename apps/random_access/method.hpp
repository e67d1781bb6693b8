// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface of the methods, and their list.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/method.hpp"
#include "table.hpp"

namespace random_access {

/// Largest number of blocks of a kernel on a GPU.
inline constexpr unsigned most_blocks = 528;

/// One method to apply the ranks' updates. Constructors and destructors are collective.
class Method : public apps::MethodOn<Table> {
 public:
  using MethodOn::MethodOn;

  /// Collective. Makes the numbers of this rank's part of the run, and has each applied to its word. Returns when this
  /// rank's part is over; after a barrier all updates are in the table. Throws the error of a failed wait: deadline,
  /// aborted, peer_died.
  virtual void run(const Run& run) = 0;

 protected:
  [[nodiscard]] Table& table() const { return data(); }
};

using MethodInfo = apps::MethodInfo<Method, Table>;

/// Every method, the seed's baseline first.
[[nodiscard]] const std::vector<MethodInfo>& methods();

[[nodiscard]] std::unique_ptr<Method> make_mpi(Table& table);
[[nodiscard]] std::string why_no_mpi(const beeline::Config& config);
[[nodiscard]] MethodInfo bare();
[[nodiscard]] MethodInfo atomics();
[[nodiscard]] MethodInfo mailboxes();
[[nodiscard]] MethodInfo put();
[[nodiscard]] MethodInfo task();

/// Why a method does not run whose ranks load from and store to each other's memory; empty if it does.
[[nodiscard]] std::string why_no_stores(const beeline::Config& config);
/// Why a method does not run whose ranks have buffers for each other; empty if it does.
[[nodiscard]] std::string why_too_many(const beeline::Config& config);

/// Symmetric memory of a rank for the buffers of the method that needs most.
[[nodiscard]] std::size_t buffer_bytes(int ranks, bool gpus);
/// Pinned memory of a rank for the baseline's buffers.
[[nodiscard]] std::size_t pinned_bytes(int ranks);

/// Finalizes MPI if a method has initialized it. To be called before the program ends.
void finish_mpi();

}  // namespace random_access
