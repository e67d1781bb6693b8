// SPDX-License-Identifier: Apache-2.0
#include "network/far_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "beeline/core/error.hpp"
#include "beeline/device/impl/machine.hpp"
#include "control/change_word.hpp"
#include "control/command_check.hpp"

namespace beeline {

namespace {

static_assert(std::endian::native == std::endian::little, "messages are little-endian");

/// Commands of a ring that are sent before others have their turn.
constexpr std::size_t batch = 64;
/// Messages of a rank that are done before it is told so, where there is always something else to do.
constexpr std::uint64_t untold_messages = 64;
/// Of messages whose sources nobody waits for.
constexpr std::uint64_t no_token = ~std::uint64_t{0};
/// A command's index in its ring takes so many bits of what messages call it.
constexpr std::uint32_t index_bits = 16;

/// TCP alone between nodes that are one machine: UCX would take its shared memory.
constexpr const char* split_transports = "tcp";

std::string text_of(std::span<const std::byte> payload) {
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

bool has_payload(const Command& command) { return command.verb == Verb::put; }

}  // namespace

FarExchange::FarExchange(const NetworkPlan& plan)
    : plan_(plan), worker_(*this, plan.is_split ? split_transports : ""), ranks_(plan.node_of.size()) {
  const int own = plan.node_of[static_cast<std::size_t>(plan.rank)];
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank].is_far = plan.node_of[rank] != own;
}

void FarExchange::connect(const std::vector<std::span<const std::byte>>& addresses) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!ranks_[rank].is_far) continue;
    worker_.connect(static_cast<int>(rank), addresses[rank]);
    static_cast<void>(
        worker_.send(static_cast<int>(rank), make_message(static_cast<int>(rank), MessageKind::hello), {}, no_token));
  }
}

std::vector<int> FarExchange::silent() const {
  std::vector<int> found;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_[rank].is_far && !ranks_[rank].has_greeted) found.push_back(static_cast<int>(rank));
  return found;
}

void FarExchange::serve(const EngineClient& client) {
  client_ = &client;
  memory_.emplace(client);
  memory_user_.emplace(*client.memory_users);
  rings_.reserve(client.rings.size());
  for (CommandRing* ring : client.rings) rings_.emplace_back(*ring);
}

NetworkMessage FarExchange::make_message(int to, MessageKind kind) {
  FarRank& rank = far(static_cast<std::uint32_t>(to));
  NetworkMessage message{};
  message.world = plan_.world;
  message.kind = kind;
  message.from = static_cast<std::uint32_t>(plan_.rank);
  message.acknowledged = rank.told = rank.arrivals.done();
  return message;
}

std::uint64_t FarExchange::send(int to, NetworkMessage message, std::span<const std::byte> payload, std::uint64_t token,
                                std::unique_ptr<std::byte[]> staged, bool& reusable) {
  FarRank& rank = far(static_cast<std::uint32_t>(to));
  message.number = ++rank.sent;
  // What is lost is never done: who waits for it ends with the world, or by the deadline.
  reusable = rank.is_lost() || worker_.send(to, message, payload, token, std::move(staged));
  return message.number;
}

// What this rank's rings hold.

bool FarExchange::has_posted() const {
  return std::any_of(rings_.begin(), rings_.end(), [this](const PostedCommands& ring) {
    const PostedCommand* const begun = ring.begun();
    return begun != nullptr ? ranks_[begun->command.peer].has_room() : ring.has_next();
  });
}

bool FarExchange::send_posted() {
  bool any = false;
  for (std::uint32_t ring = 0; ring < rings_.size(); ++ring) {
    for (std::size_t count = 0; count < batch; ++count) {
      PostedCommand* const posted = next_of(rings_[ring]);
      if (posted == nullptr) break;
      if (!posted->is_sent()) send_piece(ring << index_bits | rings_[ring].index_of(*posted), *posted);
      any = true;
    }
  }
  if (any) advance();
  return any;
}

PostedCommand* FarExchange::next_of(PostedCommands& ring) {
  PostedCommand* posted = ring.begun();
  if (posted == nullptr) {
    posted = ring.take();
    if (posted != nullptr) begin(*posted);
  }
  return posted == nullptr || posted->is_sent() || far(posted->command.peer).has_room() ? posted : nullptr;
}

void FarExchange::begin(PostedCommand& posted) {
  const Command& command = posted.command;
  const bool is_far = command.peer < ranks_.size() && far(command.peer).is_far;
  if (!is_far || static_cast<std::uint8_t>(command.verb) >= command_verbs || command.verb == Verb::copy)
    return fail(fmt::format("rank {}'s engine cannot carry a {}", plan_.rank, text_of(command)));
  const bool moves = command.verb == Verb::put || command.verb == Verb::get;
  posted.pieces = moves ? messages_of(command) : 1;
}

void FarExchange::send_piece(std::uint32_t request, PostedCommand& posted) {
  const Command& whole = posted.command;
  const int to = static_cast<int>(whole.peer);
  const std::uint64_t piece = posted.next++;
  NetworkMessage message = make_message(to, MessageKind::command);
  message.request = request, message.piece = static_cast<std::uint32_t>(piece);
  message.command = whole;
  std::span<const std::byte> payload;
  std::unique_ptr<std::byte[]> staged;
  if (whole.verb == Verb::put || whole.verb == Verb::get) {
    message.command = piece_of(whole, piece);
    const Rows rows = local_rows(message.command);
    message.command.local = 0, message.command.local_stride = rows.row_bytes;
    if (whole.verb == Verb::put && rows.is_whole()) {
      payload = {rows.first, rows.bytes()};
    } else if (whole.verb == Verb::put) {
      staged = std::make_unique_for_overwrite<std::byte[]>(rows.bytes());
      rows.pack(staged.get());
      payload = {staged.get(), rows.bytes()};
    }
  }
  message.command.peer = whole.peer;
  if (whole.answers || whole.verb == Verb::get) ++posted.awaited, ++far(whole.peer).unanswered;
  const bool borrows = staged == nullptr && !payload.empty();
  bool reusable = true;
  posted.last = send(to, message, payload, borrows ? request : no_token, std::move(staged), reusable);
  if (borrows && !reusable) ++posted.sending;
}

PostedCommand* FarExchange::posted_of(std::uint32_t request) {
  const std::uint32_t ring = request >> index_bits;
  return ring < rings_.size() ? rings_[ring].find(request & ((1u << index_bits) - 1)) : nullptr;
}

void FarExchange::sent(std::uint64_t token) {
  if (token == no_token) return;
  if (PostedCommand* const posted = posted_of(static_cast<std::uint32_t>(token)); posted != nullptr) --posted->sending;
}

// What comes.

FarRank* FarExchange::sender_of(const NetworkMessage& message) {
  const bool is_ours = message.world == plan_.world && message.from < ranks_.size() && far(message.from).is_far &&
                       !far(message.from).is_lost();
  return is_ours ? &far(message.from) : nullptr;
}

FarRank* FarExchange::sender_in_turn(const NetworkMessage& message) {
  FarRank* const from = sender_of(message);
  if (from == nullptr) return nullptr;
  from->acknowledged = std::max(from->acknowledged, std::min(message.acknowledged, from->sent));
  if (message.kind == MessageKind::hello) from->has_greeted = true;
  if (message.number == 0) return nullptr;
  if (from->arrivals.may_come(message)) return from;
  fail(fmt::format("rank {} sends message {}, after {} that were done", message.from, message.number,
                   from->arrivals.done()));
  return nullptr;
}

void FarExchange::received(const NetworkMessage& message, std::span<const std::byte> payload) {
  FarRank* const from = sender_in_turn(message);
  if (from == nullptr) return;
  if (!from->arrivals.is_next(message)) {
    static_cast<void>(from->arrivals.keep({message, {payload.begin(), payload.end()}}));
    return;
  }
  from->arrivals.begin();
  perform(message, payload, false);
  from->arrivals.end();
  do_kept(*from);
}

bool FarExchange::announced(const NetworkMessage& message, void* parcel, std::size_t bytes) {
  FarRank* const from = sender_in_turn(message);
  if (from == nullptr) return false;
  Arrival arrival{message, {}, parcel, bytes};
  if (!from->arrivals.is_next(message)) return from->arrivals.keep(std::move(arrival));
  if (is_wanted(arrival)) {
    fetch(*from, std::move(arrival));
    return true;
  }
  received(message, {});  // which refuses it
  return false;
}

bool FarExchange::is_wanted(const Arrival& arrival) {
  return arrival.parcel_bytes <= most_packed_bytes || !place_of(arrival.message, arrival.parcel_bytes).empty();
}

void FarExchange::fetch(FarRank& from, Arrival arrival) {
  from.arrivals.begin();
  std::span<std::byte> to = place_of(arrival.message, arrival.parcel_bytes);
  if (to.empty()) {
    from.fetched.resize(arrival.parcel_bytes);
    to = from.fetched;
  }
  void* const parcel = arrival.parcel;
  const int peer = static_cast<int>(arrival.message.from);
  from.fetching = std::move(arrival);
  if (worker_.fetch(peer, parcel, to)) fetched(peer);
}

void FarExchange::fetched(int peer) {
  FarRank& from = far(static_cast<std::uint32_t>(peer));
  end_fetch(from);
  do_kept(from);
}

void FarExchange::end_fetch(FarRank& from) {
  const NetworkMessage message = from.fetching->message;
  from.fetching.reset();
  perform(message, from.fetched, from.fetched.empty());
  from.fetched.clear();
  from.arrivals.end();
}

void FarExchange::do_kept(FarRank& from) {
  while (std::optional<Arrival> next = from.arrivals.take_next()) {
    if (next->parcel != nullptr && is_wanted(*next))
      return fetch(from, std::move(*next));  // the rest follows when it is there
    if (next->parcel != nullptr) worker_.drop(next->parcel);
    from.arrivals.begin();
    perform(next->message, next->payload, false);
    from.arrivals.end();
  }
}

std::span<std::byte> FarExchange::place_of(const NetworkMessage& message, std::size_t bytes) {
  const Command& command = message.command;
  const bool is_put_here = command.verb == Verb::put && command.peer == static_cast<std::uint32_t>(plan_.rank);
  if (message.kind == MessageKind::command && client_ != nullptr && is_put_here) {
    const CommandTarget target = target_of(*client_, *memory_, command);
    const bool is_whole = command.rows == 1 || command.remote_stride == command.row_bytes;
    if (target.refused == nullptr && is_whole && target.bytes == bytes) return {target.address, bytes};
  }
  if (message.kind == MessageKind::data)
    if (const PostedCommand* const posted = posted_of(message.request);
        posted != nullptr && posted->command.verb == Verb::get && message.piece < messages_of(posted->command)) {
      const Rows rows = local_rows(piece_of(posted->command, message.piece));
      if (rows.is_whole() && rows.bytes() == bytes) return {rows.first, bytes};
    }
  return {};
}

void FarExchange::take_abort(const NetworkMessage& message, std::span<const std::byte> payload) {
  if (message.request < max_teams) aborts_.push_back({message.request, message.value, text_of(payload)});
}

void FarExchange::take_refusal(const NetworkMessage& message, std::span<const std::byte> payload) {
  PostedCommand* const posted = posted_of(message.request);
  if (posted != nullptr && posted->command.peer == message.from) posted->is_refused = true;
  fail(fmt::format("rank {}'s engine refused: {}", message.from, text_of(payload)));
}

void FarExchange::perform(const NetworkMessage& message, std::span<const std::byte> payload, bool is_placed) {
  switch (message.kind) {
    case MessageKind::command:
      return perform_command(message, payload, is_placed);
    case MessageKind::value:
    case MessageKind::data:
      return take_answer(message, payload, is_placed);
    case MessageKind::refusal:
      return take_refusal(message, payload);
    case MessageKind::abort:
      return take_abort(message, payload);
    default:
      return fail(fmt::format("rank {} sent a message of no known kind", message.from));
  }
}

void FarExchange::perform_command(const NetworkMessage& message, std::span<const std::byte> payload, bool is_placed) {
  const Command& command = message.command;
  if (client_ == nullptr || command.peer != static_cast<std::uint32_t>(plan_.rank) || command.verb == Verb::copy)
    return refuse(message, "it is for another rank");
  const std::lock_guard in_use(*memory_user_);
  const CommandTarget target = target_of(*client_, *memory_, command);
  if (target.refused != nullptr) return refuse(message, target.refused);
  if (has_payload(command) && !is_placed && payload.size() != target.bytes)
    return refuse(message, "its data are not as long as it says, or longer than what fits a message");
  const Rows rows{target.address, command.rows, command.row_bytes, command.remote_stride};
  switch (command.verb) {
    case Verb::put:
      if (!is_placed) rows.unpack(payload.data());
      return;
    case Verb::get:
      if (!rows.is_whole() && rows.bytes() > most_packed_bytes)
        return refuse(message, "it is longer than what fits a message");
      return reply_rows(message, rows);
    case Verb::put_inline:
      std::memcpy(target.address, &command.local, command.width);
      return;
    default:
      const std::uint64_t held = detail::change_word(command, target.address);
      if (command.answers) reply(message, MessageKind::value, held);
  }
}

void FarExchange::refuse(const NetworkMessage& message, const std::string& reason) {
  std::string text = fmt::format("{} of rank {}: {}", text_of(message.command), message.from, reason);
  auto staged = std::make_unique_for_overwrite<std::byte[]>(text.size());
  std::memcpy(staged.get(), text.data(), text.size());
  const std::span<const std::byte> payload(staged.get(), text.size());
  NetworkMessage refusal{};
  refusal.kind = MessageKind::refusal, refusal.request = message.request;
  replies_.push_back({static_cast<int>(message.from), refusal, payload, std::move(staged)});
}

void FarExchange::reply(const NetworkMessage& to, MessageKind kind, std::uint64_t value) {
  NetworkMessage answer{};
  answer.kind = kind, answer.request = to.request, answer.piece = to.piece, answer.value = value;
  replies_.push_back({static_cast<int>(to.from), answer, {}, {}});
}

void FarExchange::reply_rows(const NetworkMessage& to, const Rows& rows) {
  reply(to, MessageKind::data, 0);
  Reply& answer = replies_.back();
  if (rows.is_whole()) {
    answer.payload = {rows.first, rows.bytes()};
    return;
  }
  answer.staged = std::make_unique_for_overwrite<std::byte[]>(rows.bytes());
  rows.pack(answer.staged.get());
  answer.payload = {answer.staged.get(), rows.bytes()};
}

bool FarExchange::send_replies() {
  if (replies_.empty()) return false;
  for (Reply& each : std::exchange(replies_, {})) {
    NetworkMessage message = make_message(each.to, each.message.kind);
    message.request = each.message.request, message.piece = each.message.piece, message.value = each.message.value;
    bool reusable = true;
    static_cast<void>(send(each.to, message, each.payload, no_token, std::move(each.staged), reusable));
  }
  return true;
}

void FarExchange::take_answer(const NetworkMessage& message, std::span<const std::byte> payload, bool is_placed) {
  PostedCommand* const posted = posted_of(message.request);
  const bool is_data = message.kind == MessageKind::data;
  if (posted == nullptr || posted->awaited == 0 || posted->command.peer != message.from ||
      is_data != (posted->command.verb == Verb::get))
    return fail(fmt::format("rank {} answers what nobody asked", message.from));
  if (is_data && !is_placed) {
    const Rows rows = local_rows(piece_of(posted->command, message.piece));
    if (message.piece >= messages_of(posted->command) || rows.bytes() != payload.size())
      return fail(
          fmt::format("rank {} answers with {} bytes, {} were asked for", message.from, payload.size(), rows.bytes()));
    rows.unpack(payload.data());
  }
  --far(message.from).unanswered;
  if (--posted->awaited == 0) rings_[message.request >> index_bits].answer(*posted, message.value);
}

// Rounds.

bool FarExchange::turn() {
  bool any = send_posted();
  any = worker_.progress() || any;
  any = send_replies() || any;
  acknowledge(!any);
  advance();
  return any;
}

void FarExchange::acknowledge(bool idle) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    FarRank& each = ranks_[rank];
    const std::uint64_t untold = each.arrivals.done() - each.told;
    if (untold == 0 || (!idle && untold < untold_messages) || each.is_lost()) continue;
    const int to = static_cast<int>(rank);
    static_cast<void>(worker_.send(to, make_message(to, MessageKind::acknowledge), {}, no_token));
  }
}

/// Nothing counts as in place once something was refused: who waits ends with the world.
void FarExchange::advance() {
  if (has_failed_) return;
  const auto done = [this](std::uint32_t rank) { return far(rank).is_gone ? far(rank).sent : far(rank).acknowledged; };
  for (PostedCommands& ring : rings_)
    if (!ring.is_idle()) ring.advance(done);
}

void FarExchange::send_abort(int peer, const FarAbort& abort) {
  FarRank& to = far(static_cast<std::uint32_t>(peer));
  if (!to.is_far || to.is_lost()) return;
  NetworkMessage message = make_message(peer, MessageKind::abort);
  message.request = abort.team, message.value = abort.word;
  auto staged = std::make_unique_for_overwrite<std::byte[]>(abort.cause.size());
  std::memcpy(staged.get(), abort.cause.data(), abort.cause.size());
  const std::span<const std::byte> payload(staged.get(), abort.cause.size());
  bool reusable = true;
  static_cast<void>(send(peer, message, payload, no_token, std::move(staged), reusable));
}

void FarExchange::lost(int peer, const std::string& reason) {
  FarRank& rank = far(static_cast<std::uint32_t>(peer));
  if (rank.is_lost()) return;
  rank.lost = reason;
  rank.lost_at_ns = machine::clock_ns();
}

void FarExchange::end_lost() {
  for (FarRank& rank : ranks_) rank.is_gone = rank.is_lost();
  for (PostedCommands& ring : rings_)
    if (!ring.is_idle()) ring.end_answers([this](std::uint32_t rank) { return far(rank).is_lost(); });
  advance();
}

bool FarExchange::reads_sources_for(int peer) const {
  const auto to = static_cast<std::uint32_t>(peer);
  return std::any_of(rings_.begin(), rings_.end(),
                     [to](const PostedCommands& ring) { return !ring.is_idle() && ring.sources_of(to) != 0; });
}

bool FarExchange::is_settled(int peer) const {
  const FarRank& rank = ranks_[static_cast<std::size_t>(peer)];
  return rank.is_lost() || (rank.acknowledged == rank.sent && rank.unanswered == 0 && !has_posted());
}

std::uint64_t FarExchange::progress_of(int peer) const {
  const FarRank& rank = ranks_[static_cast<std::size_t>(peer)];
  return rank.acknowledged + rank.sent + rank.arrivals.done();
}

void FarExchange::give_up(int peer, const std::string& reason) {
  lost(peer, reason);
  worker_.disconnect(peer);
}

void FarExchange::forget_failures() {
  has_failed_ = false;
  failure_.clear();
  aborts_.clear();
}

void FarExchange::failed(const char* reason) noexcept {
  try {
    fail(reason);
  } catch (const std::exception&) {
    has_failed_ = true;  // without words
  }
}

std::vector<std::pair<int, std::string>> FarExchange::take_lost(std::uint64_t before_ns) {
  std::vector<std::pair<int, std::string>> found;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    FarRank& each = ranks_[rank];
    if (each.lost_at_ns == 0 || each.lost_at_ns >= before_ns) continue;
    found.emplace_back(static_cast<int>(rank), each.lost);
    each.lost_at_ns = 0;
  }
  return found;
}

void FarExchange::fail(const std::string& text) {
  if (std::exchange(has_failed_, true)) return;
  failure_ = text;
}

}  // namespace beeline
