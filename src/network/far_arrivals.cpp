// SPDX-License-Identifier: Apache-2.0
// What comes from other nodes: commands of others, and answers to this rank's own.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "beeline/device/signal.hpp"
#include "beeline/device/wait.hpp"
#include "control/command_check.hpp"
#include "network/far_exchange.hpp"

namespace beeline {

namespace {

/// Payloads of a rank that are fetched at a time, and messages that are looked at for more of them.
constexpr int most_fetches = 4, most_looked_ahead = 32;

std::string text_of(std::span<const std::byte> payload) {
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

Rows rows_at(const CommandTarget& target, const Command& command) {
  return {target.address, command.rows, command.row_bytes, command.remote_stride};
}

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

FarRank* FarExchange::sender_of(const NetworkMessage& message) {
  const bool is_ours = message.world == plan_.world && message.from < ranks_.size() && far(message.from).is_far &&
                       !far(message.from).is_lost();
  return is_ours ? &far(message.from) : nullptr;
}

FarRank* FarExchange::sender_in_turn(const NetworkMessage& message) {
  FarRank* const from = sender_of(message);
  if (from == nullptr) return nullptr;
  from->acknowledged = std::max(from->acknowledged, std::min(message.acknowledged, from->sent));
  from->refusals_told = std::max(from->refusals_told, message.refusals);
  if (message.kind == MessageKind::hello) from->has_greeted = true;
  if (message.kind == MessageKind::ask) from->awaited = std::max(from->awaited, message.value);
  if (message.number == 0) return nullptr;
  if (message.may_wait == 0) from->awaited = std::max(from->awaited, message.number);
  if (from->arrivals.may_come(message)) return from;
  fail(fmt::format("rank {} sends message {}, after {} that were done", message.from, message.number,
                   from->arrivals.done()));
  return nullptr;
}

void FarExchange::received(const NetworkMessage& message, std::span<const std::byte> payload) {
  FarRank* const from = sender_in_turn(message);
  if (from == nullptr) return;
  if (!from->arrivals.is_next(message) || !has_room()) {
    static_cast<void>(from->arrivals.keep({message, {payload.begin(), payload.end()}}));
    return;
  }
  perform(message, {payload, {}, false});
  end_arrival(*from);
  do_kept(*from);
}

bool FarExchange::announced(const NetworkMessage& message, void* parcel, std::size_t bytes) {
  FarRank* const from = sender_in_turn(message);
  if (from == nullptr) return false;
  if (!from->arrivals.keep({message, {}, parcel, bytes})) return false;
  if (!from->arrivals.is_next(message) || !has_room()) {
    fetch_ahead(*from);
    return true;
  }
  if (fetch(*from->arrivals.next()) == Fetch::unwanted) {
    static_cast<void>(from->arrivals.take_next());
    received(message, {});  // which refuses it
    return false;
  }
  do_kept(*from);
  return true;
}

FarExchange::Fetch FarExchange::fetch(Arrival& arrival) {
  const bool is_put = arrival.message.kind == MessageKind::command && client_ != nullptr;
  if (is_put && !holds_.try_hold(*client_->memory_users)) {
    is_put_off_ = true;
    return Fetch::later;
  }
  arrival.is_held = is_put;
  const std::span<std::byte> place = place_of(arrival.message, arrival.parcel_bytes);
  if (!place.empty()) {
    begin_fetch(arrival, place);
    return Fetch::begun;
  }
  end_hold(arrival);
  return fetch_to_buffer(arrival);
}

FarExchange::Fetch FarExchange::fetch_to_buffer(Arrival& arrival) {
  if (arrival.parcel_bytes > (staging_ != nullptr ? staging_bytes : most_packed_bytes)) return Fetch::unwanted;
  arrival.buffer = staging_ != nullptr ? staging_->take() : make_staged(arrival.parcel_bytes);
  begin_fetch(arrival, {arrival.buffer.get(), arrival.parcel_bytes});
  return Fetch::begun;
}

void FarExchange::begin_fetch(Arrival& arrival, std::span<std::byte> to) {
  arrival.is_begun = true;
  arrival.is_there =
      worker_.fetch(static_cast<int>(arrival.message.from), arrival.parcel, to, arrival.message.number, kind_of(to));
  if (arrival.is_there) end_hold(arrival);
}

void FarExchange::end_hold(Arrival& arrival) {
  if (std::exchange(arrival.is_held, false)) holds_.release();
}

void FarExchange::fetch_ahead(FarRank& from) {
  std::vector<std::span<const std::byte>> used;
  int under_way = 0, seen = 0;
  from.arrivals.for_next([&](Arrival& each) {
    if (each.parcel != nullptr && !each.is_begun) {
      const std::span<const std::byte> place = place_of(each.message, each.parcel_bytes);
      const auto meets = [&](std::span<const std::byte> other) { return overlap(place, other); };
      if (!place.empty() && std::none_of(used.begin(), used.end(), meets)) {
        if (fetch(each) != Fetch::begun) return false;
      } else if (staging_ == nullptr || !staging_->may_take_ahead() || fetch_to_buffer(each) != Fetch::begun) {
        return false;
      }
    }
    if (each.parcel != nullptr && !each.is_there) ++under_way;
    return under_way < most_fetches && ++seen < most_looked_ahead && add_places(each.message, used);
  });
}

bool FarExchange::add_places(const NetworkMessage& message, std::vector<std::span<const std::byte>>& used) {
  if (message.kind != MessageKind::command && message.kind != MessageKind::placed)
    return true;  // what this rank has asked for goes where it said
  if (client_ == nullptr) return false;
  const auto add = [&](const Command& command) {
    const CommandTarget target = target_of(*client_, *memory_, command);
    if (target.refused != nullptr) return false;
    const bool has_rows = command.verb == Verb::put || command.verb == Verb::get;
    used.emplace_back(target.address, has_rows ? rows_at(target, command).extent() : target.bytes);
    return true;
  };
  return add(without_signal(message.command)) && (!has_signal(message.command) || add(signal_of(message.command)));
}

void FarExchange::fetched(int peer, std::uint64_t number, bool is_there) {
  FarRank& from = far(static_cast<std::uint32_t>(peer));
  Arrival* const arrival = from.arrivals.find(number);
  if (arrival == nullptr) return;
  end_hold(*arrival);
  arrival->is_there = is_there;
  if (is_there) do_kept(from);
}

bool FarExchange::is_ready(Arrival& next) {
  if (next.parcel == nullptr) return has_room();
  if (!next.is_begun) {
    if (!has_room()) return false;
    const Fetch begun = fetch(next);
    if (begun == Fetch::later) return false;
    if (begun == Fetch::unwanted) worker_.drop(std::exchange(next.parcel, nullptr));  // what follows refuses it
  }
  return next.parcel == nullptr || (next.is_there && (staging_ == nullptr || staging_->has_room()));
}

void FarExchange::do_kept(FarRank& from) {
  for (Arrival* next = from.arrivals.next(); next != nullptr && is_ready(*next); next = from.arrivals.next()) {
    Arrival arrival = from.arrivals.take_next();
    Payload payload{arrival.payload, std::move(arrival.buffer), false};
    payload.is_placed = arrival.parcel != nullptr && payload.owned == nullptr;
    if (payload.owned != nullptr) payload.bytes = {payload.owned.get(), arrival.parcel_bytes};
    perform(arrival.message, std::move(payload));
    end_arrival(from);
  }
  fetch_ahead(from);
}

void FarExchange::end_arrival(FarRank& from) {
  from.arrivals.end();
  if (from.under_way == 0) from.in_place = from.arrivals.done();
}

void FarExchange::settle(FarRank& from, std::uint64_t number) {
  from.in_place = --from.under_way == 0 ? from.arrivals.done() : number;
}

std::span<std::byte> FarExchange::place_of(const NetworkMessage& message, std::size_t bytes) {
  const bool is_put_here = puts_rows(message.command) && message.command.peer == static_cast<std::uint32_t>(plan_.rank);
  const bool is_refused = far(message.from).refused_rings.contains(message.request >> index_bits);
  Rows rows{};
  if (message.kind == MessageKind::command && client_ != nullptr && is_put_here && !is_refused) {
    const Command command = without_signal(message.command);
    const CommandTarget target = target_of(*client_, *memory_, command);
    if (target.refused == nullptr) rows = rows_at(target, command);
  }
  if (message.kind == MessageKind::data)
    if (const PostedCommand* const posted = posted_of(message.request);
        posted != nullptr && posted->command.verb == Verb::get && message.piece < posted->pieces && !posted->is_checked)
      rows = local_rows(piece_of(posted->command, cut_for(*posted), message.piece));
  if (rows.rows == 0 || !rows.is_whole() || rows.bytes() != bytes) return {};
  const bool is_ucx_target = staging_ != nullptr && staging_->has_settled() && is_for_ucx(rows);
  if (staging_ != nullptr && !is_ucx_target && !staging_->is_for_cpu_now(rows)) return {};
  return {rows.first, bytes};
}

void FarExchange::take_abort(const NetworkMessage& message, std::span<const std::byte> payload) {
  if (message.request < max_teams) aborts_.push_back({message.request, message.value, text_of(payload)});
}

void FarExchange::take_refusal(const NetworkMessage& message, std::span<const std::byte> payload) {
  ++far(message.from).refusals_taken;
  PostedCommand* const posted = posted_of(message.request);
  if (posted == nullptr || posted->command.peer != message.from)
    return fail(fmt::format("rank {} refuses what nobody posted: {}", message.from, text_of(payload)));
  if (PostedCommands& ring = *ring_of(message.request); ring.queue() != nullptr) {
    if (posted->awaited != 0) --posted->awaited, --far(message.from).unanswered;
    return ring.refuse(*posted, fmt::format("{} (rank {} says so)", text_of(payload), message.from));
  }
  posted->is_refused = true;
  fail(fmt::format("rank {}'s engine refused: {} of rank {}: {}", message.from, text_of(posted->command), plan_.rank,
                   text_of(payload)));
}

void FarExchange::perform(const NetworkMessage& message, Payload payload) {
  switch (message.kind) {
    case MessageKind::command:
      return perform_command(message, std::move(payload));
    case MessageKind::placed:
      if (!puts_rows(message.command)) break;
      payload.is_placed = true;
      return perform_command(message, std::move(payload));
    case MessageKind::value:
    case MessageKind::data:
      return take_answer(message, std::move(payload));
    case MessageKind::refusal:
      return take_refusal(message, payload.bytes);
    case MessageKind::abort:
      return take_abort(message, payload.bytes);
    case MessageKind::ask_key:
      if (client_ == nullptr) break;
      return give_key(message);
    case MessageKind::key:
      return take_key(message, payload.bytes);
    case MessageKind::end_key:
      return take_end_of_key(message);
    case MessageKind::key_ended:
      return keyed_pieces_.give_back(message.value, static_cast<int>(message.from));
    default:
      break;
  }
  fail(fmt::format("rank {} sent a message of no known kind", message.from));
}

/// Refuses a message before anything of it takes effect.
void FarExchange::perform_command(const NetworkMessage& message, Payload payload) {
  const Command& command = message.command;
  if (client_ == nullptr || command.peer != static_cast<std::uint32_t>(plan_.rank) || command.verb == Verb::copy)
    return refuse(message, "it is for another rank");
  if (far(message.from).refused_rings.contains(message.request >> index_bits))
    return refuse(message, "a command before it was refused");
  const std::lock_guard in_use(*memory_user_);
  const CommandTarget target = target_of(*client_, *memory_, command);
  if (target.refused != nullptr) return refuse(message, target.refused);
  if (puts_rows(command) && !payload.is_placed && payload.bytes.size() != target.bytes)
    return refuse(message, "its data are not as long as it says, or longer than what fits a message");
  if (target.signal == nullptr) return static_cast<void>(do_command(message, target, std::move(payload)));
  NetworkMessage first = message, signal = message;
  first.command = put_of(command), signal.command = signal_of(command);
  --first.number;  // the message is done when its signal is set
  if (!do_command(first, target, std::move(payload))) return;
  if (staging_ == nullptr)
    detail::check_repetition(client_->context, reinterpret_cast<const std::uint64_t*>(target.signal),
                             signal.command.local, message.from);
  static_cast<void>(do_command(signal, {nullptr, target.signal, signal.command.width}, {}));
}

bool FarExchange::do_command(const NetworkMessage& message, const CommandTarget& target, Payload payload) {
  const Command& command = message.command;
  const bool moves = command.verb == Verb::put || command.verb == Verb::get;
  const Rows rows = moves ? rows_at(target, command) : Rows{target.address, 1, command.width, command.width};
  if (command.verb == Verb::get && rows.bytes() > (staging_ != nullptr ? staging_bytes : most_packed_bytes) &&
      (staging_ != nullptr || !rows.is_whole())) {
    refuse(message, "it is longer than what fits a message");
    return false;
  }
  if (payload.is_placed) return true;
  if (staging_ != nullptr && !staging_->is_for_cpu_now(rows)) return stage_command(message, rows, std::move(payload));
  switch (command.verb) {
    case Verb::put:
      rows.unpack(payload.bytes.data());
      return true;
    case Verb::get:
      reply_rows(message, rows);
      return true;
    case Verb::put_inline:
      detail::put_inline(command, target.address);
      return true;
    default:
      const std::uint64_t held = detail::change_word(command, target.address);
      if (command.answers) reply(message, MessageKind::value, held);
      return true;
  }
}

/// The device does it, after what it does for others: then it counts as done, and is answered.
bool FarExchange::stage_command(const NetworkMessage& message, const Rows& rows, Payload payload) {
  FarRank& from = far(message.from);
  ++from.under_way;
  const char* refused = nullptr;
  switch (message.command.verb) {
    case Verb::put:
      refused = staging_->write(rows, staged(std::move(payload)),
                                [this, &from, number = message.number](std::uint64_t) { settle(from, number); });
      break;
    case Verb::get:
      refused = staging_->read_in_order(rows, [this, &from, message](StagedBytes bytes, std::size_t count) {
        reply(message, MessageKind::data, 0);
        replies_.back().payload = {bytes.get(), count};
        replies_.back().staged = std::move(bytes);
        settle(from, message.number);
      });
      break;
    default:
      refused = staging_->change(message.command, rows.first, [this, &from, message](std::uint64_t held) {
        if (message.command.answers) reply(message, MessageKind::value, held);
        settle(from, message.number);
      });
  }
  if (refused == nullptr) return true;
  --from.under_way;
  refuse(message, refused);
  return false;
}

StagedBytes FarExchange::staged(Payload payload) {
  if (payload.owned != nullptr) return std::move(payload.owned);
  StagedBytes bytes = staging_->take();
  std::memcpy(bytes.get(), payload.bytes.data(), payload.bytes.size());
  return bytes;
}

void FarExchange::refuse(const NetworkMessage& message, const std::string& reason) {
  FarRank& from = far(message.from);
  ++from.refusals;
  from.refused_rings.insert(message.request >> index_bits);
  reply_with(static_cast<int>(message.from), MessageKind::refusal, 0, std::as_bytes(std::span(reason)));
  replies_.back().message.request = message.request;
}

void FarExchange::reply(const NetworkMessage& to, MessageKind kind, std::uint64_t value) {
  NetworkMessage answer{};
  answer.kind = kind, answer.request = to.request, answer.piece = to.piece, answer.value = value;
  replies_.push_back({static_cast<int>(to.from), answer, {}, {}});
}

void FarExchange::reply_with(int to, MessageKind kind, std::uint64_t value, std::span<const std::byte> payload) {
  NetworkMessage answer{};
  answer.kind = kind, answer.value = value;
  if (payload.empty()) return replies_.push_back({to, answer, {}, {}});
  StagedBytes staged = make_staged(payload.size());
  std::memcpy(staged.get(), payload.data(), payload.size());
  const std::span<const std::byte> copy(staged.get(), payload.size());
  replies_.push_back({to, answer, copy, std::move(staged)});
}

void FarExchange::reply_rows(const NetworkMessage& to, const Rows& rows) {
  reply(to, MessageKind::data, 0);
  Reply& answer = replies_.back();
  // What fits a message, and may be unmapped before UCX has read it, is copied.
  if (rows.is_whole() && (rows.bytes() > most_packed_bytes || memory_->holds_for_good(rows.first, rows.bytes()))) {
    answer.payload = {rows.first, rows.bytes()};
    return;
  }
  answer.staged = make_staged(rows.bytes());
  rows.pack(answer.staged.get());
  answer.payload = {answer.staged.get(), rows.bytes()};
}

void FarExchange::take_answer(const NetworkMessage& message, Payload payload) {
  PostedCommand* const posted = posted_of(message.request);
  const bool is_data = message.kind == MessageKind::data;
  if (posted == nullptr || posted->awaited == 0 || posted->command.peer != message.from ||
      is_data != (posted->command.verb == Verb::get))
    return fail(fmt::format("rank {} answers what nobody asked", message.from));
  if (!is_data || payload.is_placed) return end_answer(message, *posted);
  if (message.piece >= posted->pieces)
    return fail(fmt::format("rank {} answers with piece {} of {}", message.from, message.piece, posted->pieces));
  const Rows rows = local_rows(piece_of(posted->command, cut_for(*posted), message.piece));
  if (rows.bytes() != payload.bytes.size())
    return fail(fmt::format("rank {} answers with {} bytes, {} were asked for", message.from, payload.bytes.size(),
                            rows.bytes()));
  if (staging_ != nullptr && !staging_->is_for_cpu_now(rows))
    return stage_answer(message, *posted, rows, std::move(payload));
  if (!unpack(rows, posted->is_checked, payload.bytes))
    refuse_own(*ring_of(message.request), *posted, "memory of its poster is not there");
  end_answer(message, *posted);
}

void FarExchange::end_answer(const NetworkMessage& message, PostedCommand& posted) {
  --far(message.from).unanswered;
  if (--posted.awaited == 0) ring_of(message.request)->answer(posted, message.value);
}

void FarExchange::stage_answer(const NetworkMessage& message, PostedCommand& posted, const Rows& rows,
                               Payload payload) {
  FarRank& from = far(message.from);
  ++from.under_way;
  const auto end = [this, &from, message, sequence = posted.command.sequence](std::uint64_t) {
    PostedCommand* const asked = posted_of(message.request);
    const bool is_awaited = asked != nullptr && asked->command.sequence == sequence && asked->awaited != 0;
    if (is_awaited) end_answer(message, *asked);  // otherwise the world has ended, and its poster with it
    settle(from, message.number);
  };
  const char* const refused = staging_->write(rows, staged(std::move(payload)), end);
  if (refused == nullptr) return;
  --from.under_way;
  PostedCommands& ring = *ring_of(message.request);
  refuse_own(ring, posted, refused);
  if (ring.queue() != nullptr) end_answer(message, posted);
}

}  // namespace beeline
