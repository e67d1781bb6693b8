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

/// Vectors of one size, and a channel.
class Workplace {
 public:
  /// Collective.
  Workplace(Session& session, std::uint64_t bytes);

  [[nodiscard]] Session& session() const { return session_; }
  [[nodiscard]] World& world() const { return session_.world(); }
  [[nodiscard]] Collectives& collectives() { return collectives_; }
  [[nodiscard]] VectorPair vectors() const;
  [[nodiscard]] std::uint64_t bytes() const { return source_.bytes(); }

  /// Collective. Whether one `call`, from `source` to `destination`, makes of fresh data what it should. The call
  /// blocks; both may be other memory of the rank than this object's.
  [[nodiscard]] bool verify(const CollectiveOperation& operation, const VectorPair& vectors, std::uint64_t seed,
                            const std::function<void()>& call);

 private:
  Session& session_;
  SymmetricArray<std::byte> source_, destination_;
  Collectives collectives_;
  VectorCheck check_;
};

/// Gives the cases of a size the same workplace while one of them is being measured.
class Workplaces {
 public:
  /// Collective, where the cases of a size begin.
  [[nodiscard]] std::shared_ptr<Workplace> get(Session& session, std::uint64_t bytes);

 private:
  std::weak_ptr<Workplace> current_;
};

/// Collective. Calls `call` for each iteration, `finish` after each batch, which waits for the calls; the nanoseconds
/// of each batch on the slowest rank.
[[nodiscard]] std::vector<double> time_calls(const Session& session, Rounds rounds, const std::function<void()>& call,
                                             const std::function<void()>& finish);

/// How a collective is called; peers are compared with what is called alike.
enum class Control { host, stream, graph, device };
[[nodiscard]] const char* name(Control control);

/// The line of `method`, without `time` and `verify`.
[[nodiscard]] Measurement collective_measurement(const CollectiveOperation& operation, const std::string& method,
                                                 Control control, const Workplace& place);

/// The same of a peer.
[[nodiscard]] Measurement peer_measurement(const CollectiveOperation& operation, const std::string& method,
                                           Control control, const Workplace& place);

}  // namespace beeline::bench
