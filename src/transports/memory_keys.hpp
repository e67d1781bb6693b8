// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Memory keys, which UCX needs to write and read another rank's memory without that rank's CPU. A rank gives keys of
/// its pieces of memory, and takes them back before it unmaps a piece. It stores the keys that other ranks have given
/// it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace beeline {

/// Whether the network's hardware writes to the target's memory with this transport (a name of UCX). Between processes
/// of one machine `cma` and `xpmem` write, too, but a CPU copies the bytes, which was measured to be no quicker than
/// messages.
[[nodiscard]] inline bool has_remote_access(std::string_view transport) {
  return transport.starts_with("rc_") || transport.starts_with("dc_");
}

/// Describes a key in a message; the key follows it. `bytes` is 0 if there is no key.
struct KeyOffer {
  std::uint64_t id = 0;       ///< by which the key's owner identifies the piece; not used again
  std::uint64_t first = 0;    ///< offset of the piece in the owner's slot
  std::uint64_t bytes = 0;    ///< length of the piece
  std::uint64_t address = 0;  ///< of the piece in the owner's process
};

[[nodiscard]] inline std::vector<std::byte> message_with(const KeyOffer& offer, std::span<const std::byte> key) {
  std::vector<std::byte> all(sizeof offer + key.size());
  std::memcpy(all.data(), &offer, sizeof offer);
  if (!key.empty()) std::memcpy(all.data() + sizeof offer, key.data(), key.size());
  return all;
}
/// The offer in a message, and the bytes of its key; nothing if the message is too short.
[[nodiscard]] inline std::optional<std::pair<KeyOffer, std::span<const std::byte>>> offer_in(
    std::span<const std::byte> payload) {
  if (payload.size() < sizeof(KeyOffer)) return std::nullopt;
  KeyOffer offer;
  std::memcpy(&offer, payload.data(), sizeof offer);
  return std::pair(offer, payload.subspan(sizeof offer));
}

/// A key or a registration, as UCX's handle. The last copy of the handle ends it.
using KeyHandle = std::shared_ptr<void>;

/// A key that another rank has given.
struct PeerKey {
  KeyOffer offer;
  KeyHandle key;           ///< nullptr: UCX cannot use the key
  std::uint64_t uses = 0;  ///< puts and gets in flight
  bool is_ended = false;   ///< the key is being given back: no further put or get uses it
};

/// The keys that one rank has given.
class PeerKeys {
 public:
  /// The key of the piece that contains an offset; nullptr if no key has arrived, or the key is being given back.
  [[nodiscard]] PeerKey* find(std::uint64_t offset) { return knows(offset) && !last_->is_ended ? last_ : nullptr; }
  /// Whether there is a key of the piece that contains an offset, even if it is being given back.
  [[nodiscard]] bool knows(std::uint64_t offset) {
    if (last_ != nullptr && holds(last_->offer, offset)) return true;
    const auto behind = keys_.upper_bound(offset);
    last_ = behind == keys_.begin() ? nullptr : &std::prev(behind)->second;
    return last_ != nullptr && holds(last_->offer, offset);
  }
  /// Stores a key. Returns false if there is already a key for the same offset.
  [[nodiscard]] bool add(PeerKey key) { return keys_.emplace(key.offer.first, std::move(key)).second; }
  /// The owner takes a key back: from now on nothing begins with it. Returns whether the key is removed, or was
  /// unknown; otherwise it is removed with the last put or get that uses it.
  [[nodiscard]] bool end(std::uint64_t id) {
    const auto found =
        std::find_if(keys_.begin(), keys_.end(), [id](const auto& key) { return key.second.offer.id == id; });
    if (found == keys_.end()) return true;
    found->second.is_ended = true;
    return remove_unused(found);
  }
  /// A put or get that used the key of the piece that contains an offset is complete. Returns the key's id if the key
  /// was removed with it.
  [[nodiscard]] std::optional<std::uint64_t> release(std::uint64_t offset) {
    const auto found = std::prev(keys_.upper_bound(offset));
    const std::uint64_t id = found->second.offer.id;
    --found->second.uses;
    return found->second.is_ended && remove_unused(found) ? std::optional(id) : std::nullopt;
  }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }

  bool is_asked = false;  ///< a key was requested, and the answer has not arrived

 private:
  [[nodiscard]] static bool holds(const KeyOffer& offer, std::uint64_t offset) {
    return offset - offer.first < offer.bytes;
  }
  bool remove_unused(std::map<std::uint64_t, PeerKey>::iterator key) {
    if (key->second.uses != 0) return false;
    last_ = nullptr;
    keys_.erase(key);
    return true;
  }

  std::map<std::uint64_t, PeerKey> keys_;  ///< by the piece's first offset
  PeerKey* last_ = nullptr;                ///< the key that `knows` found last
};

/// A piece of this rank's memory of which the rank has given keys.
struct KeyedPiece {
  std::uint64_t id = 0;
  std::span<const std::byte> bytes;
  const void* worker = nullptr;  ///< the worker that has registered the piece: its key is of no use to other workers
  KeyHandle registration;        ///< nullptr: the worker cannot register the piece
  std::vector<std::byte> key;
  std::set<int> holders;   ///< ranks that have the key
  bool is_ending = false;  ///< the piece is about to be unmapped
};

/// The registration cache of a rank's memory: each piece is registered once, when another rank first asks for its key.
class KeyedPieces {
 public:
  /// nullptr if no key of this piece was requested.
  [[nodiscard]] KeyedPiece* at(const std::byte* start) {
    return const_cast<KeyedPiece*>(std::as_const(*this).at(start));
  }
  [[nodiscard]] const KeyedPiece* at(const std::byte* start) const {
    const auto found = pieces_.find(start);
    return found == pieces_.end() ? nullptr : &found->second;
  }
  KeyedPiece& add(std::span<const std::byte> bytes) {
    KeyedPiece& piece = pieces_[bytes.data()];
    piece.id = ++last_id_, piece.bytes = bytes;
    return piece;
  }
  /// A rank has given a key back.
  void give_back(std::uint64_t id, int rank) {
    for (auto& [start, piece] : pieces_)
      if (piece.id == id) piece.holders.erase(rank);
  }
  void remove(const std::byte* start) { pieces_.erase(start); }
  /// The number of registered pieces, and their bytes.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> registered() const {
    std::pair<std::uint64_t, std::uint64_t> sum{0, 0};
    for (const auto& [start, piece] : pieces_)
      if (piece.registration != nullptr) ++sum.first, sum.second += piece.bytes.size();
    return sum;
  }

 private:
  std::map<const std::byte*, KeyedPiece> pieces_;  ///< by the piece's first byte
  std::uint64_t last_id_ = 0;
};

/// Memory of one rank that is read or written by messages to the rank that may not be done yet. A put or get by
/// key would overtake these messages, so it must not use the same memory.
class Footprints {
 public:
  void add(std::uint64_t number, std::uint64_t first, std::uint64_t bytes) {
    prints_.push_back({number, first, first + bytes});
  }
  /// All messages up to `number` are done.
  void end_up_to(std::uint64_t number) {
    while (!prints_.empty() && prints_.front().number <= number) prints_.pop_front();
  }
  [[nodiscard]] bool meet(std::uint64_t first, std::uint64_t bytes) const {
    return std::any_of(prints_.begin(), prints_.end(),
                       [=](const Print& each) { return each.first < first + bytes && first < each.end; });
  }
  [[nodiscard]] std::size_t size() const { return prints_.size(); }

 private:
  struct Print {
    std::uint64_t number, first, end;
  };
  std::deque<Print> prints_;  ///< by number
};

}  // namespace beeline
