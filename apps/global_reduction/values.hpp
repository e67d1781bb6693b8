// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One rank's values, and the common parts of all methods.

#include <cstddef>
#include <cstdint>

#include "beeline/host/launch.hpp"
#include "local_sum.hpp"

namespace global_reduction {

/// The values of a rank and the sums. Constructor and destructor are collective.
class Values {
 public:
  ///   host_blocks  blocks of the local sum on host ranks; tests take several
  Values(beeline::World& world, std::size_t count, unsigned host_blocks = 1);

  /// Collective. Fills the values with data set `set`.
  void fill(std::uint32_t set);
  /// Enqueues the local sum on the default stream; the result goes to `local()`.
  void enqueue_local_sum();
  /// The sum over all ranks from the last method; does not wait.
  [[nodiscard]] double total();

  [[nodiscard]] beeline::World& world() const { return world_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const Input& input() const { return input_; }
  /// This rank's sum, and the sum of all ranks; both are in the memory of the rank's device.
  [[nodiscard]] double* local() const { return sums_.data(); }
  [[nodiscard]] double* global() const { return sums_.data() + 1; }
  /// Number of blocks of a launch of `Kernel` over the values; all blocks may wait.
  template <class Kernel, class... Args>
  [[nodiscard]] unsigned blocks() const {
    return blocks_of(beeline::resident_blocks<Kernel, Args...>(world_, block_threads));
  }

 private:
  [[nodiscard]] unsigned blocks_of(unsigned resident) const;

  beeline::World& world_;
  std::size_t count_;
  unsigned host_blocks_;
  beeline::SymmetricArray<float> values_;
  beeline::SymmetricArray<double> sums_, block_sums_, scratch_;
  beeline::SymmetricArray<std::uint32_t> finished_;
  Input input_;
};

}  // namespace global_reduction
