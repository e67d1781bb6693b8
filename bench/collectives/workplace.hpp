// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What all ways of doing a collective share: vectors, the channel, timing by the host's clock, verification.

#include <functional>
#include <memory>
#include <string>

#include "beeline/host/collectives.hpp"
#include "collectives/operation.hpp"
#include "harness/measurement.hpp"

namespace beeline::bench {

/// Elements of a piece where the measured size is `bytes`: as nccl-tests, the size is that of the larger of a rank's
/// vectors, and pieces are whole multiples of 16 bytes; shorter ones of elements, at least one.
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
  /// Both as long as `bytes`, whatever this rank's part.
  [[nodiscard]] VectorPair vectors() const;
  /// What this rank puts in and gets.
  [[nodiscard]] RankPart part() const;
  [[nodiscard]] std::uint64_t piece_bytes() const { return count_ * bytes_of(bench_.options().type); }
  /// The measured size: what was asked for, in whole pieces.
  [[nodiscard]] std::uint64_t bytes() const { return source_.bytes(); }
  [[nodiscard]] std::uint64_t asked_bytes() const { return asked_bytes_; }

  /// Collective. Whether one `call`, from `source` to `destination`, makes of fresh data what it should. The call
  /// blocks; both may be other memory of the rank than this object's.
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

/// Gives the cases of an operation and size the same workplace while one of them is being measured.
class Workplaces {
 public:
  /// Collective, where the cases of a size begin.
  [[nodiscard]] std::shared_ptr<Workplace> get(Bench& bench, const CollectiveShape& operation, std::uint64_t bytes);

 private:
  std::weak_ptr<Workplace> current_;
};

/// How a collective is called; peers are compared with what is called alike.
enum class CallSite { host, stream, graph, device };
[[nodiscard]] const char* name(CallSite control);

/// The line of `method`, without `time` and `verify`.
[[nodiscard]] Measurement collective_measurement(const std::string& method, CallSite control, const Workplace& place);

/// The same of a peer.
[[nodiscard]] Measurement peer_measurement(const std::string& method, CallSite control, const Workplace& place);

/// Sets what `measurement` is compared with.
void compare_as(Measurement& measurement, CallSite control, const World& world);

}  // namespace beeline::bench
