// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Concurrent transfers of any length over pair links, in chunks. A member forwards a chunk as soon as it arrives.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "host/pairs/pair_channel.hpp"

namespace beeline::detail {

/// Data of the member `origin` that arrive from `peer`.
struct PairReceipt {
  std::uint32_t peer, origin;
  std::byte* data;
  std::size_t bytes;
  std::size_t done = 0;
  bool has_begun = false;  ///< also a transfer of no bytes has a chunk

  [[nodiscard]] bool is_over() const { return has_begun && done == bytes; }
};

/// Data of the member `origin` that are sent to `peer`.
struct PairDelivery {
  std::uint32_t peer, origin;
  const std::byte* data;
  std::size_t bytes;
  int follows = -1;  ///< index of the receipt whose data are forwarded; -1: this member's own data
  std::size_t done = 0;
  bool has_begun = false;

  [[nodiscard]] bool is_over() const { return has_begun && done == bytes; }
};

/// Names of the two directions in records.
struct PairOperations {
  Operation receiving, sending;
};

/// All data that one member sends and receives in a call.
class PairTransfers {
 public:
  ///   packed, count  the call's, for the heads of the chunks
  PairTransfers(const PairLinks& links, std::uint64_t packed, std::uint64_t count)
      : links_(links), packed_(packed), count_(count) {}

  /// Adds a receipt and returns its index.
  int receive(const PairReceipt& receipt) {
    receipts_.push_back(receipt);
    return static_cast<int>(receipts_.size()) - 1;
  }
  void send(const PairDelivery& delivery) { deliveries_.push_back(delivery); }

  /// Carries out all transfers.
  ///   compares_calls  compares the calls of members during waits
  ///   check  called with each arriving receipt and chunk before its data are copied; returns ok, or the status that
  ///          ends the call
  /// Returns ok; deadline or aborted, recorded; or the status of `check`.
  template <class Check>
  [[nodiscard]] Status run(PairOperations names, bool compares_calls, const Check& check) {
    PairWait wait{names.receiving, links_.context().rank, 0, compares_calls ? &links_ : nullptr};
    for (;;) {
      Status found = Status::ok;
      bool any = false, all = false;
      const auto get_on = [&](std::uint64_t& observed) {
        any = false;
        for (PairReceipt& each : receipts_)
          if (found == Status::ok && !each.is_over()) found = take(each, check, any);
        for (PairDelivery& each : deliveries_)
          if (found == Status::ok && !each.is_over()) found = give(each, any);
        all = !late(names, wait, observed);
        return any || all || found != Status::ok;
      };
      const Status waited = poll_until(links_.context(), wait, Timeout::none(), [&](std::uint64_t& observed) {
        return get_on(observed) || (links_.work_for(wait.peer) && get_on(observed));
      });
      if (waited != Status::ok) return waited;
      if (found != Status::ok || all) return found;
    }
  }

 private:
  template <class Check>
  [[nodiscard]] Status take(PairReceipt& receipt, const Check& check, bool& any) {
    for (const ChunkHead* chunk = nullptr; !receipt.is_over();) {
      chunk = links_.next(receipt.peer);
      if (chunk == nullptr) return Status::ok;
      if (const Status status = check(receipt, *chunk); status != Status::ok) return status;
      if (chunk->origin != receipt.origin) return Status::ok;  // another receipt's
      if (chunk->bytes != 0) std::memcpy(receipt.data + receipt.done, chunk + 1, chunk->bytes);
      receipt.done += chunk->bytes, receipt.has_begun = any = true;
      if (const Status status = links_.release(receipt.peer); status != Status::ok) return status;
    }
    return Status::ok;
  }

  [[nodiscard]] Status give(PairDelivery& delivery, bool& any) {
    const PairReceipt* const before =
        delivery.follows < 0 ? nullptr : &receipts_[static_cast<std::size_t>(delivery.follows)];
    while (!delivery.is_over() && (before == nullptr || before->has_begun) && links_.has_room(delivery.peer)) {
      const std::size_t there = (before == nullptr ? delivery.bytes : before->done) - delivery.done;
      const std::size_t bytes = std::min(there, links_.channel().chunk_bytes());
      if (bytes == 0 && delivery.bytes != 0) break;
      const ChunkHead head{packed_, count_, delivery.bytes, bytes, delivery.origin};
      const Status status = links_.put(delivery.peer, head, delivery.data + delivery.done);
      if (status != Status::ok) return status;
      delivery.done += bytes, delivery.has_begun = any = true;
    }
    return Status::ok;
  }

  /// Whether a transfer is not complete; describes it in `wait` and `observed`.
  [[nodiscard]] bool late(PairOperations names, PairWait& wait, std::uint64_t& observed) const {
    const auto is_late = [&](Operation operation, std::uint32_t peer, std::uint64_t number) {
      wait.operation = operation, wait.peer = peer, wait.number = number;
      observed = number - 1;
      return true;
    };
    for (const PairReceipt& each : receipts_)
      if (!each.is_over()) return is_late(names.receiving, each.peer, links_.awaited_number(each.peer));
    for (const PairDelivery& each : deliveries_)
      if (!each.is_over()) return is_late(names.sending, each.peer, links_.next_number(each.peer));
    return false;
  }

  const PairLinks& links_;
  std::uint64_t packed_, count_;
  std::vector<PairReceipt> receipts_;
  std::vector<PairDelivery> deliveries_;
};

}  // namespace beeline::detail
