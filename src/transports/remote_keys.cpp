// SPDX-License-Identifier: Apache-2.0
#include "transports/remote_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <tuple>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"

namespace beeline {

namespace {

/// With the automatic choice, shorter puts go in messages: the flush after a put takes another round trip. A get takes
/// one round trip in either case.
constexpr std::uint64_t least_put_bytes = std::uint64_t{64} << 10;

}  // namespace

void RemoteKeys::clear() {
  tables_.clear();
  pieces_ = {};
}

void RemoteKeys::choose(int peer) {
  const NetworkPlan& plan = peers_.plan();
  const auto rank = static_cast<std::size_t>(peer);
  KeyedTransfers* const worker = peers_[static_cast<std::uint32_t>(peer)].worker->keyed_transfers();
  const bool is_staged = plan.stages();
  if (worker == nullptr || (is_staged && !peers_[static_cast<std::uint32_t>(peer)].takes_device_memory)) return;
  const std::vector<std::string> links = worker->links_to(peer);
  if (plan.keys == MemoryKeys::always || std::any_of(links.begin(), links.end(), has_remote_access))
    tables_[rank].worker = worker;
  tables_[rank].links = links.empty() ? "a transport that it does not name" : fmt::format("{}", fmt::join(links, ", "));
}

std::string RemoteKeys::uses_of(int peer) const {
  const auto rank = static_cast<std::uint32_t>(peer);
  std::string text;
  if (peers_[rank].takes_device_memory) text = ", long payloads in GPU memory by its CUDA transports";
  const Table& table = tables_[rank];
  const NetworkPlan& plan = peers_.plan();
  const bool is_any_staged = plan.is_staged[rank] || plan.stages();
  if (table.worker != nullptr)
    text += fmt::format(", {} by memory keys ({})", is_any_staged ? "long puts" : "gets and long puts", table.links);
  return text;
}

PeerKey* RemoteKeys::key_for(std::uint32_t peer, const Command& part) {
  Table& to = tables_[peer];
  const std::uint64_t bytes = part.row_bytes;
  if (to.worker == nullptr || to.gives_none || peers_[peer].is_lost() || part.rows != 1 || bytes == 0) return nullptr;
  const bool is_any_staged = peers_.staging() != nullptr || peers_.plan().is_staged[peer];
  if (gets_rows(part) && is_any_staged) return nullptr;  // a device reads GPU memory after its earlier work
  if (peers_.plan().keys != MemoryKeys::always && puts_rows(part) && bytes < least_put_bytes) return nullptr;
  PeerKey* const found = to.keys.find(part.remote);
  if (found == nullptr) {
    ++statistics_.key_misses;
    if (!to.keys.knows(part.remote) && !std::exchange(to.keys.is_asked, true)) ask_key(peer, part.remote);
    return nullptr;
  }
  const bool holds_all = bytes <= found->offer.bytes - (part.remote - found->offer.first);
  if (found->key == nullptr || !holds_all) {
    ++statistics_.key_misses;
    return nullptr;
  }
  to.footprints.end_up_to(peers_[peer].acknowledged);
  if (to.footprints.meet(part.remote, bytes)) {
    ++statistics_.key_overlaps;
    return nullptr;
  }
  ++statistics_.key_hits;
  return found;
}

void RemoteKeys::ask_key(std::uint32_t peer, std::uint64_t offset) {
  NetworkMessage message = peers_.make_message(MessageKind::ask_key);
  message.value = offset;
  peers_.send(peer, message);
}

void RemoteKeys::take_key(const NetworkMessage& message, std::span<const std::byte> payload) {
  Table& from = tables_[message.from];
  from.keys.is_asked = false;
  const auto offer = offer_in(payload);
  if (!offer) return peers_.fail(fmt::format("rank {} sends a key of {} bytes", message.from, payload.size()));
  if (offer->first.bytes == 0) {
    from.gives_none = peers_.plan().is_staged[message.from];
    return;
  }
  PeerKey key{offer->first, nullptr};
  try {
    if (!offer->second.empty() && from.worker != nullptr)
      key.key = from.worker->unpack_key(static_cast<int>(message.from), offer->second);
  } catch (const Error& error) {
    log(LogLevel::warning,
        fmt::format("puts to and gets from a piece of rank {}'s memory go by messages: {}", message.from, error.what()),
        peers_.plan().rank);
  }
  if (!from.keys.add(std::move(key))) peers_.fail(fmt::format("rank {} sends a key twice", message.from));
}

void RemoteKeys::take_end_of_key(const NetworkMessage& message) {
  ++statistics_.keys_ended;
  if (tables_[message.from].keys.end(message.value)) peers_.reply(message, MessageKind::key_ended, message.value);
}

bool RemoteKeys::put(std::uint32_t peer, const NetworkMessage& message, std::span<const std::byte> data, PeerKey& key) {
  Table& to = tables_[peer];
  ++key.uses;
  to.puts.emplace(message.number, message);
  const std::uint64_t address = key.offer.address + (message.command.remote - key.offer.first);
  return to.worker->put(static_cast<int>(peer), data, address, key.key, message.number,
                        peers_.kind_of(peers_[peer], data));
}

std::optional<NetworkMessage> RemoteKeys::take_put(std::uint32_t peer, std::uint64_t number) {
  const auto found = tables_[peer].puts.extract(number);
  return found ? std::optional(found.mapped()) : std::nullopt;
}

bool RemoteKeys::get(const Command& part, std::uint64_t token, PeerKey& key) {
  ++key.uses;
  const Rows rows = local_rows(part);
  const std::uint64_t address = key.offer.address + (part.remote - key.offer.first);
  return tables_[part.peer].worker->get(static_cast<int>(part.peer), {rows.first, rows.bytes()}, address, key.key,
                                        token);
}

void RemoteKeys::release(std::uint32_t peer, std::uint64_t offset) {
  if (const auto id = tables_[peer].keys.release(offset)) peers_.reply_with(peer, MessageKind::key_ended, *id);
}

void RemoteKeys::add_footprint(const Command& whole) {
  const RemotePeer& peer = peers_[whole.peer];
  Table& to = tables_[whole.peer];
  if (to.worker == nullptr || is_batch(whole)) return;
  constexpr std::uint64_t word = sizeof(std::uint64_t);
  const Command command = without_signal(whole);
  to.footprints.end_up_to(peer.acknowledged);
  const std::uint64_t bytes = moves_rows(command)
                                  ? Rows{nullptr, command.rows, command.row_bytes, command.remote_stride}.extent()
                                  : std::max<std::uint64_t>(command.width, word);
  to.footprints.add(peer.sent, command.remote, bytes);
  if (has_signal(whole)) to.footprints.add(peer.sent, signal_of(whole).remote, word);
}

// The keys of this rank's memory.

KeyedPiece* RemoteKeys::piece_for_key(const std::byte* address, KeyedTransfers& worker, bool for_gpu) {
  const EngineClient& client = peers_.memory()->client;
  const std::span<const std::byte> bytes = client.piece_at(address);
  if (bytes.empty() || bytes.data() == unmapping_ || (!for_gpu && !client.is_host_memory(bytes.data()))) return nullptr;
  if (KeyedPiece* const known = pieces_.at(bytes.data()); known != nullptr)
    return known->is_ending || known->worker != &worker ? nullptr : known;
  KeyedPiece& piece = pieces_.add(bytes);
  piece.worker = &worker;
  try {
    piece.registration = worker.register_memory(bytes);
    piece.key = worker.key_of(piece.registration);
  } catch (const Error& error) {
    log(LogLevel::warning,
        fmt::format("{} bytes of this rank's memory have no key, puts to and gets from them go by messages: {}",
                    bytes.size(), error.what()),
        peers_.plan().rank);
    piece.key.clear();
  }
  return &piece;
}

void RemoteKeys::give_key(const NetworkMessage& message) {
  const auto own = static_cast<std::uint32_t>(peers_.plan().rank);
  LocalMemory& memory = *peers_.memory();
  KeyedTransfers* const worker = tables_[message.from].worker;
  KeyedPiece* piece = nullptr;
  const std::byte* address = nullptr;
  if (worker != nullptr && message.value < SlotLayout{memory.client.context.slot_shift}.slot_bytes()) {
    const std::lock_guard in_use(memory.user);
    address = memory.client.address_of(own, message.value);
    piece = piece_for_key(address, *worker, peers_[message.from].takes_device_memory);
  }
  KeyOffer offer;
  if (piece != nullptr) {
    piece->holders.insert(static_cast<int>(message.from));
    const auto before = static_cast<std::uint64_t>(address - piece->bytes.data());
    offer = {piece->id, message.value - before, piece->bytes.size(),
             reinterpret_cast<std::uintptr_t>(piece->bytes.data())};
  }
  peers_.reply_with(message.from, MessageKind::key, 0,
                    message_with(offer, piece != nullptr ? piece->key : std::vector<std::byte>()));
}

bool RemoteKeys::end_keys(const std::byte* start) {
  unmapping_ = start;
  KeyedPiece* const piece = pieces_.at(start);
  if (piece == nullptr) return false;
  piece->is_ending = true;
  for (const int holder : piece->holders)
    peers_.reply_with(static_cast<std::uint32_t>(holder), MessageKind::end_key, piece->id);
  return true;
}

std::vector<int> RemoteKeys::holders_of(const std::byte* start) const {
  std::vector<int> found;
  if (const KeyedPiece* const piece = pieces_.at(start); piece != nullptr)
    std::copy_if(piece->holders.begin(), piece->holders.end(), std::back_inserter(found),
                 [this](int rank) { return !peers_[static_cast<std::uint32_t>(rank)].is_lost(); });
  return found;
}

void RemoteKeys::unregister(const std::byte* start) {
  KeyedPiece* const piece = pieces_.at(start);
  if (piece == nullptr || piece->registration == nullptr) return;
  piece->registration = nullptr;
  ++statistics_.pieces_ended;
}

/// If the unmapping was given up, the keys that other ranks still have stay valid.
void RemoteKeys::forget(const std::byte* start) {
  unmapping_ = nullptr;
  KeyedPiece* const piece = pieces_.at(start);
  if (piece == nullptr) return;
  if (piece->registration != nullptr && !holders_of(start).empty())
    piece->is_ending = false;
  else
    pieces_.remove(start);
}

NetworkStatistics RemoteKeys::statistics() const {
  NetworkStatistics now = statistics_;
  std::tie(now.registered_pieces, now.registered_bytes) = pieces_.registered();
  return now;
}

}  // namespace beeline
