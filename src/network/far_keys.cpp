// SPDX-License-Identifier: Apache-2.0
// Puts by memory keys: who gives which key to whom, and until when. What asks for a key and answers it, and what takes
// one back, are messages in the order of all others.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <tuple>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "core/environment.hpp"
#include "network/far_exchange.hpp"

namespace beeline {

namespace {

/// Shorter puts go in messages where the choice is automatic: the flush behind a put takes a round trip more.
constexpr std::uint64_t least_keyed_bytes = std::uint64_t{64} << 10;

}  // namespace

/// Keys end before the worker, and behind the puts that use them.
FarExchange::~FarExchange() {
  worker_.close();
  for (FarRank& rank : ranks_) rank.keys = {};
  keyed_pieces_ = {};
}

// Whether there are any.

/// Where UCX registers memory it hooks calls that unmap some, for all of the process: it does so for keys alone.
bool FarExchange::may_have_keys(const NetworkPlan& plan) {
  if (plan.keys != MemoryKeys::automatic) return plan.keys == MemoryKeys::always;
  return !plan.is_tcp_alone || detail::environment("UCX_TLS").value_or("tcp") != "tcp";
}

void FarExchange::choose_keys(int peer) {
  FarRank& rank = far(static_cast<std::uint32_t>(peer));
  const bool is_staged = staging_ != nullptr || plan_.is_staged[static_cast<std::size_t>(plan_.rank)] ||
                         plan_.is_staged[static_cast<std::size_t>(peer)];
  if (!may_have_keys(plan_) || is_staged) return;
  const std::vector<std::string> transports = worker_.transports_to(peer);
  rank.has_keys =
      plan_.keys == MemoryKeys::always || std::any_of(transports.begin(), transports.end(), has_remote_access);
  rank.transports =
      transports.empty() ? "a transport that it does not name" : fmt::format("{}", fmt::join(transports, ", "));
}

std::string FarExchange::way_of_puts_to(int peer) const {
  const FarRank& rank = ranks_[static_cast<std::size_t>(peer)];
  if (gives_ucx_gpu_memory()) return ", long payloads in GPU memory by its CUDA transports";
  return rank.has_keys ? fmt::format(", long puts by memory keys ({})", rank.transports) : std::string();
}

// The keys of others.

FarKey* FarExchange::key_for(std::uint32_t peer, const Command& part) {
  FarRank& to = far(peer);
  const std::uint64_t bytes = part.row_bytes;
  if (!to.has_keys || to.is_lost() || part.rows != 1 || bytes == 0) return nullptr;
  if (plan_.keys != MemoryKeys::always && bytes < least_keyed_bytes) return nullptr;
  FarKey* const found = to.keys.find(part.remote);
  if (found == nullptr) {
    ++statistics_.key_misses;
    if (!to.keys.knows(part.remote) && !std::exchange(to.keys.is_asked, true))
      ask_key(static_cast<int>(peer), part.remote);
    return nullptr;
  }
  const bool holds_all = bytes <= found->offer.bytes - (part.remote - found->offer.first);
  if (found->key == nullptr || !holds_all) {
    ++statistics_.key_misses;
    return nullptr;
  }
  to.footprints.end_up_to(to.acknowledged);
  if (to.footprints.meet(part.remote, bytes)) {
    ++statistics_.key_overlaps;
    return nullptr;
  }
  ++statistics_.key_hits;
  return found;
}

void FarExchange::ask_key(int peer, std::uint64_t offset) {
  NetworkMessage message = make_message(MessageKind::ask_key);
  message.value = offset;
  bool reusable = true;
  static_cast<void>(send(peer, message, {}, no_token, {}, reusable));
}

void FarExchange::take_key(const NetworkMessage& message, std::span<const std::byte> payload) {
  FarRank& from = far(message.from);
  from.keys.is_asked = false;
  const auto offer = offer_in(payload);
  if (!offer) return fail(fmt::format("rank {} sends a key of {} bytes", message.from, payload.size()));
  if (offer->first.bytes == 0) return;
  FarKey key{offer->first, nullptr};
  try {
    if (!offer->second.empty()) key.key = worker_.unpack_key(static_cast<int>(message.from), offer->second);
  } catch (const Error& error) {
    log(LogLevel::warning,
        fmt::format("puts to a piece of rank {}'s memory go by messages: {}", message.from, error.what()), plan_.rank);
  }
  if (!from.keys.add(std::move(key))) fail(fmt::format("rank {} sends a key twice", message.from));
}

void FarExchange::take_end_of_key(const NetworkMessage& message) {
  ++statistics_.keys_ended;
  if (far(message.from).keys.end(message.value)) reply(message, MessageKind::key_ended, message.value);
}

// Puts.

/// The message has its number at once, and goes when its data are in place: the target puts it into its place among
/// those that overtake it.
void FarExchange::send_by_key(NetworkMessage message, PostedCommand& posted, std::span<const std::byte> data,
                              FarKey& key) {
  const auto peer = posted.command.peer;
  FarRank& to = far(peer);
  message.kind = MessageKind::placed;
  message.number = ++to.sent;
  if (message.may_wait != 0) to.last_deferred = message.number;
  posted.last = message.number;
  ++posted.sending;
  ++key.uses;
  to.keyed_puts.emplace(message.number, KeyedPut{message, key.offer});
  const std::uint64_t address = key.offer.address + (message.command.remote - key.offer.first);
  if (worker_.put(static_cast<int>(peer), data, address, key.key, message.number))
    placed(static_cast<int>(peer), message.number, true);
}

void FarExchange::placed(int peer, std::uint64_t number, bool is_there) {
  FarRank& to = far(static_cast<std::uint32_t>(peer));
  const auto found = to.keyed_puts.find(number);
  if (found == to.keyed_puts.end()) return;
  const KeyedPut put = found->second;
  to.keyed_puts.erase(found);
  sent(put.message.request);
  if (is_there && !to.is_lost()) static_cast<void>(transmit(peer, put.message, {}, no_token));
  if (to.keys.release(put.key.first)) reply_with(peer, MessageKind::key_ended, put.key.id);
}

void FarExchange::add_footprint(const NetworkMessage& message) {
  FarRank& to = far(message.command.peer);
  if (!to.has_keys) return;
  constexpr std::uint64_t word = sizeof(std::uint64_t);
  const Command command = without_signal(message.command);
  const bool moves = command.verb == Verb::put || command.verb == Verb::get;
  to.footprints.end_up_to(to.acknowledged);
  const std::uint64_t bytes = moves ? Rows{nullptr, command.rows, command.row_bytes, command.remote_stride}.extent()
                                    : std::max<std::uint64_t>(command.width, word);
  to.footprints.add(to.sent, command.remote, bytes);
  if (has_signal(message.command)) to.footprints.add(to.sent, signal_of(message.command).remote, word);
}

// The keys of this rank's memory.

KeyedPiece* FarExchange::piece_for_key(const std::byte* address) {
  const std::span<const std::byte> bytes = client_->piece_at(address);
  if (bytes.empty() || !client_->is_host_memory(bytes.data())) return nullptr;
  if (KeyedPiece* const known = keyed_pieces_.at(bytes.data()); known != nullptr)
    return known->is_ending ? nullptr : known;
  KeyedPiece& piece = keyed_pieces_.add(bytes);
  try {
    piece.registration = worker_.register_memory(bytes);
    piece.key = worker_.key_of(piece.registration);
  } catch (const Error& error) {
    log(LogLevel::warning,
        fmt::format("{} bytes of this rank's memory have no key, puts to them go by messages: {}", bytes.size(),
                    error.what()),
        plan_.rank);
    piece.key.clear();
  }
  return &piece;
}

void FarExchange::give_key(const NetworkMessage& message) {
  const int to = static_cast<int>(message.from);
  KeyedPiece* piece = nullptr;
  const bool is_offset = message.value < SlotLayout{client_->context.slot_shift}.slot_bytes();
  if (far(message.from).has_keys && is_offset) {
    const std::lock_guard in_use(*memory_user_);
    piece = piece_for_key(client_->address_of(static_cast<std::uint32_t>(plan_.rank), message.value));
  }
  KeyOffer offer;
  if (piece != nullptr) {
    piece->holders.insert(to);
    const std::byte* const own = client_->address_of(static_cast<std::uint32_t>(plan_.rank), 0);
    offer = {piece->id, static_cast<std::uint64_t>(piece->bytes.data() - own), piece->bytes.size(),
             reinterpret_cast<std::uintptr_t>(piece->bytes.data())};
  }
  reply_with(to, MessageKind::key, 0, message_with(offer, piece != nullptr ? piece->key : std::vector<std::byte>()));
}

bool FarExchange::end_keys(const std::byte* start) {
  KeyedPiece* const piece = keyed_pieces_.at(start);
  if (piece == nullptr) return false;
  piece->is_ending = true;
  for (const int holder : piece->holders) reply_with(holder, MessageKind::end_key, piece->id);
  return true;
}

std::vector<int> FarExchange::holders_of(const std::byte* start) const {
  std::vector<int> found;
  if (const KeyedPiece* const piece = keyed_pieces_.at(start); piece != nullptr)
    std::copy_if(piece->holders.begin(), piece->holders.end(), std::back_inserter(found),
                 [this](int rank) { return !is_lost(rank); });
  return found;
}

void FarExchange::unregister(const std::byte* start) {
  KeyedPiece* const piece = keyed_pieces_.at(start);
  if (piece == nullptr || piece->registration == nullptr) return;
  piece->registration = nullptr;
  ++statistics_.pieces_ended;
}

/// Where the unmapping was given up, the keys that others still have stay valid.
void FarExchange::forget_keys(const std::byte* start) {
  KeyedPiece* const piece = keyed_pieces_.at(start);
  if (piece == nullptr) return;
  if (piece->registration != nullptr && !holders_of(start).empty())
    piece->is_ending = false;
  else
    keyed_pieces_.remove(start);
}

NetworkStatistics FarExchange::statistics() const {
  NetworkStatistics now = statistics_;
  std::tie(now.registered_pieces, now.registered_bytes) = keyed_pieces_.registered();
  return now;
}

}  // namespace beeline
