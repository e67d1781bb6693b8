// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Memory keys: what UCX needs to write to another rank's memory without that rank's CPU. A rank gives keys to its
/// pieces of memory, and takes them back before it unmaps one; it keeps the keys that others have given it.

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

/// Whether the network's hardware writes to memory of the target, by a transport that UCX calls so. Between processes
/// of one machine `cma` and `xpmem` write, too, but a CPU copies: that has been measured to be no quicker than
/// messages.
[[nodiscard]] inline bool has_remote_access(std::string_view transport) {
  return transport.starts_with("rc_") || transport.starts_with("dc_");
}

/// Of a key, in a message; the key follows it. Without bytes: there is none.
struct KeyOffer {
  std::uint64_t id = 0;       ///< by which its owner knows the piece; none is used twice
  std::uint64_t first = 0;    ///< offset of the piece in its owner's slot
  std::uint64_t bytes = 0;    ///< of the piece
  std::uint64_t address = 0;  ///< of the piece, in its owner's process
};

[[nodiscard]] inline std::vector<std::byte> message_with(const KeyOffer& offer, std::span<const std::byte> key) {
  std::vector<std::byte> all(sizeof offer + key.size());
  std::memcpy(all.data(), &offer, sizeof offer);
  if (!key.empty()) std::memcpy(all.data() + sizeof offer, key.data(), key.size());
  return all;
}
/// The offer in a message, and where its key begins; nothing where the message is too short.
[[nodiscard]] inline std::optional<std::pair<KeyOffer, std::span<const std::byte>>> offer_in(
    std::span<const std::byte> payload) {
  if (payload.size() < sizeof(KeyOffer)) return std::nullopt;
  KeyOffer offer;
  std::memcpy(&offer, payload.data(), sizeof offer);
  return std::pair(offer, payload.subspan(sizeof offer));
}

/// A key, or a registration; what UCX knows it by. Its end ends it.
using KeyHandle = std::shared_ptr<void>;

/// A key that another rank has given.
struct PeerKey {
  KeyOffer offer;
  KeyHandle key;           ///< nullptr: UCX cannot use it
  std::uint64_t uses = 0;  ///< puts in flight
  bool is_ended = false;   ///< it is being given back: no further put uses it
};

/// Those of one rank.
class PeerKeys {
 public:
  /// The key for the piece in which an offset lies; nullptr: none has come, or it is being given back.
  [[nodiscard]] PeerKey* find(std::uint64_t offset) { return knows(offset) && !last_->is_ended ? last_ : nullptr; }
  /// Whether there is one, also if it is being given back.
  [[nodiscard]] bool knows(std::uint64_t offset) {
    if (last_ != nullptr && holds(last_->offer, offset)) return true;
    const auto behind = keys_.upper_bound(offset);
    last_ = behind == keys_.begin() ? nullptr : &std::prev(behind)->second;
    return last_ != nullptr && holds(last_->offer, offset);
  }
  /// Keeps a key. False: one for that place is there already.
  [[nodiscard]] bool add(PeerKey key) { return keys_.emplace(key.offer.first, std::move(key)).second; }
  /// Its owner takes a key back: from here on no put begins with it. Returns whether it is gone; otherwise it goes with
  /// the last put that uses it. Unknown ones are.
  [[nodiscard]] bool end(std::uint64_t id) {
    const auto found =
        std::find_if(keys_.begin(), keys_.end(), [id](const auto& key) { return key.second.offer.id == id; });
    if (found == keys_.end()) return true;
    found->second.is_ended = true;
    return remove_unused(found);
  }
  /// A put with that key is over. Returns whether the key has gone with it.
  [[nodiscard]] bool release(std::uint64_t first) {
    const auto found = keys_.find(first);
    --found->second.uses;
    return found->second.is_ended && remove_unused(found);
  }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }

  bool is_asked = false;  ///< a key has been asked for, and the answer has not come

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

  std::map<std::uint64_t, PeerKey> keys_;  ///< by the first offset
  PeerKey* last_ = nullptr;                ///< the one found last
};

/// A piece of this rank's memory to which it has given keys.
struct KeyedPiece {
  std::uint64_t id = 0;
  std::span<const std::byte> bytes;
  const void* worker = nullptr;  ///< that has registered it: its key is of no use to others
  KeyHandle registration;        ///< nullptr: the worker cannot register it
  std::vector<std::byte> key;
  std::set<int> holders;   ///< ranks that have the key
  bool is_ending = false;  ///< it is about to be unmapped
};

/// The registration cache of a rank's memory: each piece is registered once, when another rank first asks for its key.
class KeyedPieces {
 public:
  /// nullptr: no key of this piece was asked for.
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
  /// Those that are registered, and their bytes.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> registered() const {
    std::pair<std::uint64_t, std::uint64_t> sum{0, 0};
    for (const auto& [start, piece] : pieces_)
      if (piece.registration != nullptr) ++sum.first, sum.second += piece.bytes.size();
    return sum;
  }

 private:
  std::map<const std::byte*, KeyedPiece> pieces_;  ///< by first byte
  std::uint64_t last_id_ = 0;
};

/// What messages to one rank read and write of its memory and may not have done yet. A put by key overtakes them.
class Footprints {
 public:
  void add(std::uint64_t number, std::uint64_t first, std::uint64_t bytes) {
    prints_.push_back({number, first, first + bytes});
  }
  /// All messages up to that number have been done.
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
