// SPDX-License-Identifier: Apache-2.0
#include "transports/remote_receiver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "beeline/device/signal.hpp"
#include "beeline/device/wait.hpp"
#include "transports/packed_batch.hpp"

namespace beeline {

namespace {

/// Payloads of a rank that are fetched at a time; messages of a rank that are searched for payloads to fetch.
constexpr int most_fetches = 4, most_looked_ahead = 32;

Rows rows_at(const CommandTarget& target, const Command& command) {
  return {target.address, command.rows, command.row_bytes, command.remote_stride};
}

/// Commands that a device needs room for.
std::size_t commands_of(const NetworkMessage& message) {
  return is_batch(message.command) ? std::min<std::size_t>(message.command.rows, most_staged_entries) : 2;
}

/// Whether rows are a few aligned words, such as the name of the call that this rank is in (Meetings), which its
/// threads may change meanwhile.
bool are_few_words(const Rows& rows) {
  constexpr std::size_t most_bytes = 64, word_bytes = sizeof(std::uint64_t);
  return rows.is_whole() && rows.bytes() <= most_bytes && rows.bytes() % word_bytes == 0 &&
         reinterpret_cast<std::uintptr_t>(rows.first) % word_bytes == 0;
}

void load_words(const Rows& rows, std::byte* to) {
  auto* const words = reinterpret_cast<std::uint64_t*>(rows.first);
  for (std::size_t i = 0; i < rows.bytes() / sizeof *words; ++i) {
    const std::uint64_t word = detail::SystemAtomic<std::uint64_t>(words[i]).load(std::memory_order_relaxed);
    std::memcpy(to + i * sizeof word, &word, sizeof word);
  }
}

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

bool RemoteReceiver::turn() {
  const bool any = peers_.staging() != nullptr && peers_.staging()->turn();
  if (peers_.staging() != nullptr || std::exchange(is_deferred_, false))
    for (std::uint32_t rank = 0; rank < peers_.size(); ++rank) do_kept(peers_[rank]);
  return any;
}

RemotePeer* RemoteReceiver::sender_of(const NetworkMessage& message) {
  const bool is_ours = message.world == peers_.plan().world && message.from < peers_.size() &&
                       peers_[message.from].is_remote && !peers_[message.from].is_lost();
  return is_ours ? &peers_[message.from] : nullptr;
}

RemotePeer* RemoteReceiver::sender_in_turn(const NetworkMessage& message) {
  RemotePeer* const from = sender_of(message);
  if (from == nullptr) return nullptr;
  from->acknowledged = std::max(from->acknowledged, std::min(message.acknowledged, from->sent));
  from->refusals_sent = std::max(from->refusals_sent, message.refusals);
  if (message.kind == MessageKind::hello) from->has_greeted = true;
  if (message.kind == MessageKind::ask) from->asked_for = std::max(from->asked_for, message.value);
  if (message.number == 0) return nullptr;
  if (message.may_wait == 0) from->awaited = std::max(from->awaited, message.number);
  if (from->arrivals.may_come(message)) return from;
  peers_.fail(fmt::format("rank {} sends message {}, after {} that were done", message.from, message.number,
                          from->arrivals.done()));
  return nullptr;
}

void RemoteReceiver::received(const NetworkMessage& message, std::span<const std::byte> payload) {
  RemotePeer* const from = sender_in_turn(message);
  if (from == nullptr) return;
  if (!from->arrivals.is_next(message) || !has_room(message)) {
    static_cast<void>(from->arrivals.keep({message, {payload.begin(), payload.end()}}));
    return;
  }
  perform(message, {payload, {}, false});
  from->end_arrival();
  do_kept(*from);
}

bool RemoteReceiver::announced(const NetworkMessage& message, void* parcel, std::size_t bytes) {
  RemotePeer* const from = sender_in_turn(message);
  if (from == nullptr) return false;
  if (!from->arrivals.keep({message, {}, parcel, bytes})) return false;
  if (!from->arrivals.is_next(message) || !has_room(message)) {
    fetch_ahead(*from);
    return true;
  }
  if (fetch(*from->arrivals.next()) == Fetch::unwanted) {
    static_cast<void>(from->arrivals.take_next());
    received(message, {});  // refuses the message
    return false;
  }
  do_kept(*from);
  return true;
}

RemoteReceiver::Fetch RemoteReceiver::fetch(Arrival& arrival) {
  const bool is_put = arrival.message.kind == MessageKind::command && peers_.memory() != nullptr;
  if (is_put && !holds_.try_hold(*peers_.memory()->client.memory_users)) {
    is_deferred_ = true;
    return Fetch::later;
  }
  arrival.is_held = is_put;
  const std::span<std::byte> place = destination_of(arrival.message, arrival.parcel_bytes);
  if (!place.empty()) {
    begin_fetch(arrival, place);
    return Fetch::begun;
  }
  end_hold(arrival);
  return fetch_to_buffer(arrival);
}

RemoteReceiver::Fetch RemoteReceiver::fetch_to_buffer(Arrival& arrival) {
  if (arrival.parcel_bytes > (peers_.staging() != nullptr ? staging_bytes : most_packed_bytes)) return Fetch::unwanted;
  arrival.buffer = peers_.staging() != nullptr ? peers_.staging()->take() : make_staged(arrival.parcel_bytes);
  begin_fetch(arrival, {arrival.buffer.get(), arrival.parcel_bytes});
  return Fetch::begun;
}

void RemoteReceiver::begin_fetch(Arrival& arrival, std::span<std::byte> to) {
  arrival.is_begun = true;
  arrival.is_there = peers_[arrival.message.from].worker->fetch(static_cast<int>(arrival.message.from), arrival.parcel,
                                                                to, arrival.message.number,
                                                                peers_.kind_of(peers_[arrival.message.from], to));
  if (arrival.is_there) end_hold(arrival);
}

void RemoteReceiver::end_hold(Arrival& arrival) {
  if (std::exchange(arrival.is_held, false)) holds_.release();
}

void RemoteReceiver::fetch_ahead(RemotePeer& from) {
  std::vector<std::span<const std::byte>> used;
  int in_flight = 0, seen = 0;
  from.arrivals.for_next([&](Arrival& each) {
    if (each.parcel != nullptr && !each.is_begun) {
      const std::span<const std::byte> place = destination_of(each.message, each.parcel_bytes);
      const auto meets = [&](std::span<const std::byte> other) { return overlap(place, other); };
      if (!place.empty() && std::none_of(used.begin(), used.end(), meets)) {
        if (fetch(each) != Fetch::begun) return false;
      } else if (peers_.staging() == nullptr || !peers_.staging()->may_take_ahead() ||
                 fetch_to_buffer(each) != Fetch::begun) {
        return false;
      }
    }
    if (each.parcel != nullptr && !each.is_there) ++in_flight;
    return in_flight < most_fetches && ++seen < most_looked_ahead && add_footprint(each.message, used);
  });
}

bool RemoteReceiver::add_footprint(const NetworkMessage& message, std::vector<std::span<const std::byte>>& used) {
  if (message.kind != MessageKind::command && message.kind != MessageKind::placed)
    return true;  // an answer goes to the memory that this rank's command names
  if (peers_.memory() == nullptr || is_batch(message.command)) return false;  // a batch's entries are in its payload
  const auto add = [&](const Command& command) {
    const CommandTarget target = target_at(command);
    if (target.refused != nullptr) return false;
    used.emplace_back(target.address, moves_rows(command) ? rows_at(target, command).extent() : target.bytes);
    return true;
  };
  return add(without_signal(message.command)) && (!has_signal(message.command) || add(signal_of(message.command)));
}

void RemoteReceiver::fetched(int peer, std::uint64_t number, bool is_there) {
  RemotePeer& from = peers_[static_cast<std::uint32_t>(peer)];
  Arrival* const arrival = from.arrivals.find(number);
  if (arrival == nullptr) return;
  end_hold(*arrival);
  arrival->is_there = is_there;
  if (is_there) do_kept(from);
}

bool RemoteReceiver::has_room(const NetworkMessage& message) const {
  return peers_.staging() == nullptr || peers_.staging()->may_change(commands_of(message));
}

bool RemoteReceiver::is_ready(Arrival& next) {
  if (next.parcel == nullptr) return has_room(next.message);
  if (!next.is_begun) {
    if (!has_room(next.message)) return false;
    const Fetch begun = fetch(next);
    if (begun == Fetch::later) return false;
    if (begun == Fetch::unwanted)
      peers_[next.message.from].worker->drop(std::exchange(next.parcel, nullptr));  // it is refused later
  }
  if (next.parcel == nullptr) return true;
  return next.is_there && (peers_.staging() == nullptr || peers_.staging()->has_room(commands_of(next.message)));
}

void RemoteReceiver::do_kept(RemotePeer& from) {
  for (Arrival* next = from.arrivals.next(); next != nullptr && is_ready(*next); next = from.arrivals.next()) {
    Arrival arrival = from.arrivals.take_next();
    Payload payload{arrival.payload, std::move(arrival.buffer), false};
    payload.is_placed = arrival.parcel != nullptr && payload.owned == nullptr;
    if (payload.owned != nullptr) payload.bytes = {payload.owned.get(), arrival.parcel_bytes};
    perform(arrival.message, std::move(payload));
    from.end_arrival();
  }
  fetch_ahead(from);
}

std::span<std::byte> RemoteReceiver::destination_of(const NetworkMessage& message, std::size_t bytes) {
  const bool is_put_here =
      puts_rows(message.command) && message.command.peer == static_cast<std::uint32_t>(peers_.plan().rank);
  const bool is_refused = peers_[message.from].refused_rings.contains(message.request >> RemoteSender::index_bits);
  Rows rows{};
  if (message.kind == MessageKind::command && peers_.memory() != nullptr && is_put_here && !is_refused) {
    const Command command = without_signal(message.command);
    const CommandTarget target = target_at(command);
    if (target.refused == nullptr) rows = rows_at(target, command);
  }
  if (message.kind == MessageKind::data) rows = sender_.rows_of_answer(message);
  if (rows.rows == 0 || !rows.is_whole() || rows.bytes() != bytes) return {};
  const bool is_for_transport = peers_.staging() != nullptr && peers_.staging()->has_settled() &&
                                peers_.is_for_transport(peers_[message.from], rows);
  if (peers_.staging() != nullptr && !is_for_transport && !peers_.staging()->is_for_cpu_now(rows)) return {};
  return {rows.first, bytes};
}

void RemoteReceiver::perform(const NetworkMessage& message, Payload payload) {
  switch (message.kind) {
    case MessageKind::command:
      return perform_command(message, std::move(payload));
    case MessageKind::placed:
      if (!puts_rows(message.command)) break;
      payload.is_placed = true;
      return perform_command(message, std::move(payload));
    case MessageKind::value:
    case MessageKind::data:
      return sender_.take_answer(message, std::move(payload));
    case MessageKind::refusal:
      return sender_.take_refusal(message, payload.bytes);
    case MessageKind::abort:
      return peers_.take_abort(message, payload.bytes);
    case MessageKind::ask_key:
      if (peers_.memory() == nullptr) break;
      return keys_.give_key(message);
    case MessageKind::key:
      return keys_.take_key(message, payload.bytes);
    case MessageKind::end_key:
      return keys_.take_end_of_key(message);
    case MessageKind::key_ended:
      return keys_.take_back(message);
    default:
      break;
  }
  peers_.fail(fmt::format("rank {} sent a message of no known kind", message.from));
}

/// Refuses a message before any part of it takes effect.
void RemoteReceiver::perform_command(const NetworkMessage& message, Payload payload) {
  const Command& command = message.command;
  if (peers_.memory() == nullptr || command.peer != static_cast<std::uint32_t>(peers_.plan().rank) ||
      has_shape<VerbShape::between>(command.verb))
    return refuse(message, "it is for another rank");
  if (peers_[message.from].refused_rings.contains(message.request >> RemoteSender::index_bits))
    return refuse(message, "a command before it was refused");
  LocalMemory& memory = *peers_.memory();
  const std::lock_guard in_use(memory.user);
  const CommandTarget target = target_at(command);
  if (target.refused != nullptr) return refuse(message, target.refused);
  if (is_batch(command)) return perform_batch(message, payload.bytes);
  if (puts_rows(command) && !payload.is_placed && payload.bytes.size() != target.bytes)
    return refuse(message, "its data are not as long as it says, or longer than what fits a message");
  if (target.signal == nullptr) return static_cast<void>(do_command(message, target, std::move(payload)));
  NetworkMessage first = message, signal = message;
  first.command = put_of(command), signal.command = signal_of(command);
  --first.number;  // the message is done when its signal is set
  if (!do_command(first, target, std::move(payload))) return;
  if (memory.staging == nullptr)
    detail::check_repetition(memory.client.context, reinterpret_cast<const std::uint64_t*>(target.signal),
                             signal.command.local, message.from);
  static_cast<void>(do_command(signal, {nullptr, target.signal, signal.command.width}, {}));
}

/// Checks all entries before the first is carried out.
void RemoteReceiver::perform_batch(const NetworkMessage& message, std::span<const std::byte> payload) {
  const bool is_staged = peers_.staging() != nullptr;
  if (is_staged && message.command.rows > most_staged_entries)
    return refuse(message, "its target's device does not take so many entries at once");
  std::array<std::byte*, most_batch_entries> targets;
  std::string refused;
  const bool is_good =
      for_entries(message.command, payload, [&](std::size_t i, const Command& entry, const std::byte*) {
        const char* const unfit =
            is_staged && puts_rows(entry) ? "its target's device takes rows by themselves" : refuse_in_batch(entry);
        const CommandTarget target = unfit == nullptr ? target_at(entry) : CommandTarget{unfit};
        if (target.refused != nullptr) refused = refuse_entry(message.piece + i, entry, target.refused);
        targets[i] = target.address;
        return target.refused == nullptr;
      });
  if (!is_good) return refuse(message, refused.empty() ? "its data are not as long as its entries say" : refused);
  NetworkMessage one = message;
  static_cast<void>(
      for_entries(message.command, payload, [&](std::size_t i, const Command& entry, const std::byte* data) {
        one.command = entry;
        one.number = message.number - (i + 1 < message.command.rows ? 1 : 0);  // done when the last entry is
        return do_command(one, {nullptr, targets[i]}, {{data, entry.row_bytes}, {}, false});
      }));
}

bool RemoteReceiver::do_command(const NetworkMessage& message, const CommandTarget& target, Payload payload) {
  const Command& command = message.command;
  const Rows rows =
      moves_rows(command) ? rows_at(target, command) : Rows{target.address, 1, command.width, command.width};
  if (gets_rows(command) && rows.bytes() > (peers_.staging() != nullptr ? staging_bytes : most_packed_bytes) &&
      (peers_.staging() != nullptr || !rows.is_whole())) {
    refuse(message, "it is longer than what fits a message");
    return false;
  }
  if (payload.is_placed) return true;
  if (peers_.staging() != nullptr && !peers_.staging()->is_for_cpu_now(command, rows))
    return stage_command(message, rows, std::move(payload));
  if (puts_rows(command)) {
    rows.unpack(payload.bytes.data());
  } else if (gets_rows(command)) {
    reply_rows(message, rows);
  } else if (has_shape<VerbShape::payload>(command.verb)) {
    detail::put_inline(command, target.address);
  } else {
    const std::uint64_t held = detail::change_word(command, target.address);
    if (command.answers) peers_.reply(message, MessageKind::value, held);
  }
  return true;
}

/// The device carries out the command after its earlier work for other ranks. Then the command is done, and is
/// answered.
bool RemoteReceiver::stage_command(const NetworkMessage& message, const Rows& rows, Payload payload) {
  RemotePeer& from = peers_[message.from];
  ++from.in_device;
  const char* refused = nullptr;
  if (puts_rows(message.command)) {
    refused =
        peers_.staging()->write(rows, true, staged_bytes(*peers_.staging(), std::move(payload)),
                                [this, &from, number = message.number](std::uint64_t) { from.end_in_device(number); });
  } else if (gets_rows(message.command)) {
    refused = peers_.staging()->read_in_order(rows, true, [this, &from, message](StagedBytes bytes, std::size_t count) {
      RemotePeers::Reply& answer = peers_.reply(message, MessageKind::data, 0);
      answer.payload = {bytes.get(), count};
      answer.staged = std::move(bytes);
      from.end_in_device(message.number);
    });
  } else {
    refused = peers_.staging()->change(message.command, rows.first, [this, &from, message](std::uint64_t held) {
      if (message.command.answers) peers_.reply(message, MessageKind::value, held);
      from.end_in_device(message.number);
    });
  }
  if (refused == nullptr) return true;
  --from.in_device;
  refuse(message, refused);
  return false;
}

void RemoteReceiver::refuse(const NetworkMessage& message, const std::string& reason) {
  RemotePeer& from = peers_[message.from];
  ++from.refusals;
  from.refused_rings.insert(message.request >> RemoteSender::index_bits);
  peers_.reply_with(message.from, MessageKind::refusal, 0, std::as_bytes(std::span(reason))).message.request =
      message.request;
}

/// A few words are loaded here, one by one. Memory that may be unmapped before the transport has read it is held for
/// long rows. Short rows are copied, and all rows while a thread is about to unmap.
void RemoteReceiver::reply_rows(const NetworkMessage& to, const Rows& rows) {
  RemotePeers::Reply& answer = peers_.reply(to, MessageKind::data, 0);
  answer.payload = {rows.first, rows.bytes()};
  MemoryUsers& users = *peers_.memory()->client.memory_users;
  const bool has_words = are_few_words(rows);
  if (!has_words && rows.is_whole() && peers_.memory()->mapped.holds_for_good(rows.first, rows.bytes())) return;
  if (rows.is_whole() && rows.bytes() > most_packed_bytes && users.try_hold()) {
    answer.staged = held_bytes(rows.first, users);
    return;
  }
  answer.staged = make_staged(rows.bytes());
  has_words ? load_words(rows, answer.staged.get()) : rows.pack(answer.staged.get());
  answer.payload = {answer.staged.get(), rows.bytes()};
}

}  // namespace beeline
