// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Atomics on memory of the program (`gaspi_segment_bind`, `gaspi_segment_use`) of another rank of the node, which this
/// process cannot map: the owner's service thread does them. A rank has one request in flight to each owner.
///
///     caller                                                owner's service thread
///     request[caller] = word, change, number; asked += 1 -> sees `asked` change, finds the requests with new numbers
///                                                           changes the word once
///     waits for answer[owner].number = number            <- answer[owner] = value before
///
/// A service thread that is idle looks every 10 ms, one that has just worked every 50 us (service.cpp).

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "gaspi/checks.hpp"

namespace beeline::gaspi {

/// A change of a word of a segment of its owner.
struct AtomicChange {
  std::uint64_t segment, offset;
  std::uint64_t swaps;       ///< 0: adds `operand`; 1: compares with `comparator`, and stores `operand` if equal
  std::uint64_t comparator;  ///< of a swap
  std::uint64_t operand;

  bool operator==(const AtomicChange&) const = default;
  /// Changes the word; returns its value before.
  [[nodiscard]] std::uint64_t apply(std::uint64_t& word) const;
};

class ForwardedAtomics final : public Extension {
 public:
  void open(Process& process) override;
  [[nodiscard]] bool serve(Process& process) override;

  /// Lets the owner change the word, and sets `before`; or continues the same call, which timed out.
  [[nodiscard]] Result change(const Process& process, int owner, const AtomicChange& wanted, std::uint64_t timeout_ms,
                              std::uint64_t& before);

 private:
  struct Request {
    AtomicChange change;
    std::uint64_t number;  ///< from 1 on; set last
  };
  struct Answer {
    std::uint64_t before;
    std::uint64_t is_refused;  ///< the word was no longer there
    std::uint64_t number;      ///< of the request; set last
  };
  /// The request of this rank to one owner.
  struct Outgoing {
    std::mutex calls;  ///< held by the call that waits
    Request request{};
    bool is_in_flight = false;
    bool is_unsure = false;  ///< the request may be there although its post failed: posted again, it has its number
  };
  /// The last request of one caller that this rank has carried out.
  struct Served {
    Answer answer{};
    bool is_sent = true;
  };

  [[nodiscard]] beeline_status post(const Process& process, int owner, const Outgoing& to) const;
  /// Carries out the request of `caller` if it is new, and sends the answer.
  void serve_one(const Process& process, int caller);
  [[nodiscard]] static Answer carry_out(const Process& process, const Request& request);

  Request* requests_ = nullptr;                      ///< [ranks] symmetric: of each caller
  Answer* answers_ = nullptr;                        ///< [ranks] symmetric: of each owner
  std::uint64_t* asked_ = nullptr;                   ///< symmetric: number of requests to a rank
  std::uint64_t seen_ = 0;                           ///< of `asked_`, when this rank looked at the requests last
  bool has_unsent_ = false;                          ///< some answers have to be sent again
  std::vector<std::unique_ptr<Outgoing>> outgoing_;  ///< [ranks]
  std::vector<Served> served_;                       ///< [ranks]
};

}  // namespace beeline::gaspi
