// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All memory of a world that one rank knows.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/device/impl/host_checks.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "host/address_book.hpp"
#include "host/world/areas.hpp"
#include "host/world/heaps.hpp"
#include "host/world/membership.hpp"
#include "memory/distributed_memory.hpp"
#include "memory/memory_aliases.hpp"
#include "memory/node_memory.hpp"
#include "memory/registration.hpp"

namespace beeline {

/// The ranks' heaps, host areas and segments, distributed arrays and registered memory, and the owner of each address.
/// One thread at a time calls collective functions.
class MemoryMap {
 public:
  /// Collective. Makes and maps the heaps and host areas.
  ///   secret   a number that is equal on all ranks of the world
  ///   members  how this rank's device reaches each rank's memory
  MemoryMap(Bootstrap& bootstrap, const Config& config, const Membership& membership, std::uint64_t secret,
            std::vector<MemoryMember> members);

  [[nodiscard]] NodeMemory& node() { return node_; }
  [[nodiscard]] const NodeMemory& node() const { return node_; }
  [[nodiscard]] AddressRange& range() const { return node_.range(); }
  [[nodiscard]] DistributedMemory& distributed() { return distributed_; }
  [[nodiscard]] Registration& registration() { return registration_; }
  [[nodiscard]] MemoryAliases& aliases() { return aliases_; }
  /// The address in its owner's slot by which this rank's engine names memory of a rank on another node.
  [[nodiscard]] std::byte* named_in_slot(void* address) const;
  [[nodiscard]] const AddressBook& addresses() const { return addresses_; }
  [[nodiscard]] const Areas& areas() const { return areas_; }
  [[nodiscard]] Heaps& heaps() { return heaps_; }
  [[nodiscard]] const Heaps& heaps() const { return heaps_; }
  /// Checks of calls by CPU threads. They cover heaps on which CPU threads load and store.
  [[nodiscard]] detail::HostChecks& checks() { return checks_; }
  /// From now on signals that repeat a value are reported to `watcher`.
  void watch_repeated_signals(std::unique_ptr<detail::RepeatedSignals> watcher) {
    repeated_signals_ = std::move(watcher);
    checks_.repeated_signals = repeated_signals_.get();
  }
  [[nodiscard]] const detail::HostChecks& checks() const { return checks_; }

  /// Updates the address book after arrays or registrations were made or destroyed.
  void note_arrays() { addresses_.set_arrays(distributed_.arrays(), distributed_.place_bytes()); }
  void note_registered() { addresses_.set_intervals(registration_.intervals()); }

  /// Calls `call(to, from, bytes)` for each piece of a copy, since chunks of a distributed array are on different
  /// devices.
  template <class Call>
  void for_pieces(void* destination, const void* source, std::size_t bytes, const Call& call) const {
    auto* to = static_cast<std::byte*>(destination);
    const auto* from = static_cast<const std::byte*>(source);
    while (bytes > 0) {
      const std::size_t piece =
          std::min({bytes, addresses_.bytes_of_one_owner(to), addresses_.bytes_of_one_owner(from)});
      call(to, from, piece);
      to += piece, from += piece, bytes -= piece;
    }
  }

 private:
  NodeMemory node_;
  MemoryAliases aliases_;
  DistributedMemory distributed_;
  Registration registration_;
  AddressBook addresses_;
  const Areas areas_;
  std::unique_ptr<detail::RepeatedSignals> repeated_signals_;  ///< nullptr: signals are not checked
  detail::HostChecks checks_;
  Heaps heaps_;
};

/// Collective. Fills in the sizes of the heaps and slots that `config` leaves open. Throws the same error on all ranks
/// if their sizes differ, or exceed a host's memory.
void agree_on_sizes(Bootstrap& bootstrap, Config& config, const Membership& membership);

/// Collective. Returns a random number that is equal on all ranks of the world.
[[nodiscard]] std::uint64_t agree_on_secret(Bootstrap& bootstrap, std::int64_t deadline_ns);

}  // namespace beeline
