// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The common parts of all methods of a collective: vectors, the channel, timing by the host's clock, verification.

#include <functional>
#include <memory>
#include <string>

#include "beeline/host/collectives.hpp"
#include "collectives/operation.hpp"
#include "harness/measurement.hpp"

namespace beeline::bench {

/// Elements of a piece for the measured size `bytes`. As in nccl-tests, the size is that of the larger vector of a
/// rank. Pieces are whole multiples of 16 bytes; shorter pieces are whole elements, at least one.
[[nodiscard]] std::size_t piece_elements(const CollectiveShape& operation, std::uint64_t bytes, ElementType type,
                                         int ranks);

/// Vectors of one size, and a channel.
class Workplace {
 public:
  /// Collective.
  Workplace(Bench& bench, const CollectiveShape& operation, std::uint64_t bytes);

  [[nodiscard]] Bench& bench() const { return bench_; }
  [[nodiscard]] World& world() const { return bench_.world(); }
  [[nodiscard]] const CollectiveShape& operation() const { return operation_; }
  [[nodiscard]] Collectives& collectives() { return collectives_; }
  /// The two vectors, both of length `bytes`, whatever this rank's part.
  [[nodiscard]] VectorPair vectors() const;
  /// The number of pieces that this rank contributes and receives.
  [[nodiscard]] RankPart part() const;
  [[nodiscard]] std::uint64_t piece_bytes() const { return count_ * bytes_of(bench_.options().type); }
  /// The measured size: the requested size, rounded to whole pieces.
  [[nodiscard]] std::uint64_t bytes() const { return source_.bytes(); }
  [[nodiscard]] std::uint64_t asked_bytes() const { return asked_bytes_; }

  /// Collective. Whether one `call`, from `source` to `destination`, produces the right result from fresh data. The
  /// call blocks; both vectors may be in other memory of the rank than this object's.
  [[nodiscard]] bool verify(const VectorPair& vectors, std::uint64_t seed, const std::function<void()>& call);

 private:
  Bench& bench_;
  const CollectiveShape& operation_;
  std::uint64_t asked_bytes_;
  std::size_t count_;
  SymmetricArray<std::byte> source_, destination_;
  Collectives collectives_;
  VectorCheck check_;
};

/// Gives the cases of an operation and size the same workplace while any of them is measured.
class Workplaces {
 public:
  /// Collective, at the beginning of the cases of a size.
  [[nodiscard]] std::shared_ptr<Workplace> get(Bench& bench, const CollectiveShape& operation, std::uint64_t bytes);

 private:
  std::weak_ptr<Workplace> current_;
};

/// How a collective is called; peers are compared with Beeline's methods of the same call site.
enum class CallSite { host, stream, graph, device };
[[nodiscard]] const char* name(CallSite control);

/// The measurement of `method`, without `time` and `verify`.
[[nodiscard]] Measurement collective_measurement(const std::string& method, CallSite control, const Workplace& place);

/// The same for a peer's method.
[[nodiscard]] Measurement peer_measurement(const std::string& method, CallSite control, const Workplace& place);

/// Sets the methods with which `measurement` is compared.
void compare_as(Measurement& measurement, CallSite control, const World& world);

}  // namespace beeline::bench
