// SPDX-License-Identifier: Apache-2.0
#include "transports/remote_sender.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "beeline/core/error.hpp"
#include "control/command_check.hpp"
#include "transports/packed_batch.hpp"

namespace beeline {

namespace {

/// Commands of a ring that are sent before the next ring has its turn.
constexpr std::size_t batch = 64;

}  // namespace

StagedBytes staged_bytes(Staging& staging, Payload payload) {
  if (payload.owned != nullptr) return std::move(payload.owned);
  StagedBytes bytes = staging.take();
  std::memcpy(bytes.get(), payload.bytes.data(), payload.bytes.size());
  return bytes;
}

template <class Ring>
void RemoteSender::open(Ring& ring) {
  require(next_ring_ < most_rings, Status::no_resource,
          fmt::format("command queues to other nodes: {} have been made, and no more can be", next_ring_));
  rings_.push_back({next_ring_++, std::make_unique<PostedCommands>(ring)});
}
template void RemoteSender::open(CommandRing& ring);
template void RemoteSender::open(CarriedQueue& queue);

/// Answers that are missing are no longer waited for.
void RemoteSender::close(const CarriedQueue& queue) {
  for (const auto& [number, ring] : rings_)
    if (ring->queue() == &queue)
      ring->for_open([this](const PostedCommand& posted) { peers_[posted.command.peer].unanswered -= posted.awaited; });
  std::erase_if(rings_, [&queue](const auto& ring) { return ring.commands->queue() == &queue; });
}

bool RemoteSender::has_posted() const {
  return std::any_of(rings_.begin(), rings_.end(), [this](const auto& each) {
    const PostedCommand* const begun = each.commands->begun();
    return begun != nullptr ? may_send(*begun) : each.commands->has_next();
  });
}

RemoteSender::SentFromRings RemoteSender::send_from_rings(bool may_lock) {
  SentFromRings result;
  asked_ = nullptr;
  for (const auto& [number, commands] : rings_) {
    PostedCommands& ring = *commands;
    std::size_t count = 0;
    for (PostedCommand* posted = next_of(ring); posted != nullptr; posted = next_of(ring)) {
      const bool is_left = count++ == batch || (!may_lock && needs_lock(*posted));
      result.all = result.all && !is_left;
      if (is_left) break;
      if (!posted->is_sent()) send_piece(number, ring, *posted);
      result.any = true;
    }
  }
  if (result.any) advance();
  return result;
}

PostedCommand* RemoteSender::next_of(PostedCommands& ring) {
  PostedCommand* posted = ring.begun();
  if (posted == nullptr) {
    posted = ring.take();
    if (posted != nullptr) begin(ring, *posted);
  }
  return posted == nullptr || posted->is_sent() || may_send(*posted) ? posted : nullptr;
}

bool RemoteSender::may_send(const PostedCommand& posted) const {
  const Staging* const staging = peers_.staging();
  return peers_[posted.command.peer].has_room() &&
         (staging == nullptr || !(puts_rows(posted.command) || is_batch(posted.command)) || staging->may_read());
}

void RemoteSender::begin(PostedCommands& ring, PostedCommand& posted) {
  if (ring.has_refused()) return;  // the ring sends no further messages
  const Command& command = posted.command;
  if (ring.queue() != nullptr)
    if (const char* const reason = ring.queue()->check(command); reason != nullptr) return ring.refuse(posted, reason);
  const bool is_remote = command.peer < peers_.size() && peers_[command.peer].is_remote;
  if (!is_remote || has_shape<VerbShape::between, VerbShape::count>(command.verb))
    return peers_.fail(fmt::format("rank {}'s engine cannot carry a {}", peers_.plan().rank, text_of(command)));
  if (peers_[command.peer].is_gone && (gets_rows(command) || command.answers)) {
    // Posted before its poster knew of the loss: it finds that the world is aborted.
    if (ring.queue() == nullptr && peers_.is_aborted()) return ring.answer(posted, 0);
    if (ring.queue() == nullptr) posted.awaited = 1;  // answered when the abort is known: a get waits for its answer
    return refuse_own(ring, posted, fmt::format("rank {} has ended", command.peer));
  }
  const bool moves = moves_rows(command);
  const Rows rows = local_rows(without_signal(command));
  const bool is_readable = puts_rows(command) && command.is_signed;
  posted.is_checked = moves && !is_readable && ring.queue() != nullptr &&
                      !peers_.memory()->mapped.holds_for_good(rows.first, rows.extent());
  if (is_batch(command)) posted.is_checked = ring.queue() != nullptr;
  posted.most_bytes = most_bytes(ring, posted);
  posted.pieces = is_batch(command) ? command.rows : moves ? cut_for(posted).messages() : 1;
}

/// Memory that a queue's command names may be unmapped before the command is done, unless it belongs to a heap: such
/// rows travel inside messages. At the target, memory that a put writes to is not unmapped.
std::uint64_t RemoteSender::most_bytes(const PostedCommands& ring, const PostedCommand& posted) const {
  const Command& command = posted.command;
  const bool gets = ring.queue() != nullptr && gets_rows(command);
  const bool packs = posted.is_checked && peers_.staging() == nullptr;
  if (packs || (gets && !lies_in_heap(peers_.memory()->client.context, command.remote, 1))) return most_packed_bytes;
  return peers_.staging() != nullptr || peers_.plan().is_staged[command.peer] ? staging_bytes : ~std::uint64_t{0};
}

void RemoteSender::refuse_own(PostedCommands& ring, PostedCommand& posted, const std::string& reason) {
  if (ring.queue() != nullptr) return ring.refuse(posted, reason);
  posted.is_refused = true;
  peers_.fail(fmt::format("rank {}'s engine refused: {}: {}", peers_.plan().rank, text_of(posted.command), reason));
}

StagedBytes RemoteSender::packed(const Rows& rows, bool is_checked) {
  StagedBytes bytes = make_staged(rows.bytes());
  const std::lock_guard in_use(peers_.memory()->user);
  if (!is_checked || peers_.memory()->mapped.holds_in_host_memory(rows.first, rows.extent()))
    rows.pack(bytes.get());
  else if (!rows.pack_if_there(bytes.get()))
    bytes.reset();
  return bytes;
}

bool RemoteSender::unpack(const Rows& rows, bool is_checked, std::span<const std::byte> bytes) {
  const std::lock_guard in_use(peers_.memory()->user);
  if (is_checked && !peers_.memory()->mapped.holds_in_host_memory(rows.first, rows.extent()))
    return rows.unpack_if_there(bytes.data());
  rows.unpack(bytes.data());
  return true;
}

void RemoteSender::send_piece(std::uint32_t number, PostedCommands& ring, PostedCommand& posted) {
  const Command& whole = posted.command;
  RemotePeer& to = peers_[whole.peer];
  NetworkMessage message = peers_.make_message(MessageKind::command);
  message.request = number << index_bits | ring.index_of(posted);
  if (is_batch(whole)) return send_entries(message, ring, posted);
  const std::uint64_t piece = posted.next++;
  message.piece = static_cast<std::uint32_t>(piece);
  if (has_signal(whole)) let_acknowledgement_wait(message, ring, posted);
  message.command = whole;
  if (whole.answers || gets_rows(whole)) ++posted.awaited, ++to.unanswered, asked_ = &to;
  if (!moves_rows(whole)) return send_command(message, posted);
  const Command part = piece_of(without_signal(whole), cut_for(posted), piece);
  message.command = message_of(part, whole, posted.is_sent());
  gets_rows(whole) ? send_get(message, ring, posted, part) : send_rows(message, ring, posted, part);
}

void RemoteSender::send_rows(const NetworkMessage& message, PostedCommands& ring, PostedCommand& posted,
                             const Command& part) {
  const std::uint32_t peer = posted.command.peer;
  const Rows rows = local_rows(part);
  const bool is_for_transport =
      peers_.is_for_transport(peers_[peer], rows) && peers_.memory()->mapped.holds_for_good(rows.first, rows.extent());
  if (Staging* const staging = peers_.staging(); staging != nullptr && !is_for_transport && !staging->is_for_cpu(rows))
    return send_staged(message, ring, posted, rows);
  if (rows.is_whole() && (is_for_transport || !posted.is_checked)) {
    const std::span<const std::byte> data(rows.first, rows.bytes());
    if (PeerKey* const key = ring.queue() == nullptr ? keys_.key_for(peer, part) : nullptr; key != nullptr)
      return send_by_key(message, posted, data, *key);
    return send_command(message, posted, data);
  }
  StagedBytes bytes = packed(rows, posted.is_checked);
  if (bytes == nullptr) return refuse_own(ring, posted, "memory of its poster is not there");
  const std::span<const std::byte> payload(bytes.get(), rows.bytes());
  send_command(message, posted, payload, std::move(bytes));
}

void RemoteSender::send_entries(NetworkMessage message, PostedCommands& ring, PostedCommand& posted) {
  const Command& batch = posted.command;
  const BatchEntries entries = entries_of(posted);
  if (!entries.is_there()) return refuse_batch(ring, posted, "memory of its poster is not there");
  const bool is_staged = peers_.staging() != nullptr || peers_.plan().is_staged[batch.peer];
  const BatchPart part = part_of(batch, entries.all(), posted.next, is_staged);
  if (part.refused == nullptr && part.entries == 0)
    return send_entry(message, ring, posted, command_of(batch, entries.all().front()));
  const std::span<const BatchEntry> sent = entries.all().first(part.entries);
  StagedBytes bytes = make_staged(part.bytes);
  const char* const refused = part.refused != nullptr ? part.refused : packed_entries(posted, sent, bytes.get());
  if (refused != nullptr) return refuse_batch(ring, posted, refused);
  message.command = batch;
  message.command.local = 0, message.command.rows = part.entries;
  message.piece = static_cast<std::uint32_t>(posted.next);
  posted.next += part.entries;
  const bool ends_with_signal = has_shape<VerbShape::word>(command_of(batch, sent.back()).verb);
  if (posted.is_sent() && ends_with_signal) let_acknowledgement_wait(message, ring, posted);
  const std::span<const std::byte> payload(bytes.get(), part.bytes);
  send_command(message, posted, payload, std::move(bytes));
  for (const BatchEntry& entry : sent) keys_.add_footprint(command_of(batch, entry));
}

void RemoteSender::refuse_batch(PostedCommands& ring, PostedCommand& posted, const char* reason) {
  posted.next = posted.pieces;
  refuse_own(ring, posted, reason);
}

BatchEntries RemoteSender::entries_of(const PostedCommand& posted) {
  const std::lock_guard in_use(peers_.memory()->user);
  return {posted.command, posted.next, peers_.memory()->mapped};
}

const char* RemoteSender::packed_entries(const PostedCommand& posted, std::span<const BatchEntry> entries,
                                         std::byte* payload) {
  LocalMemory& memory = *peers_.memory();
  const std::lock_guard in_use(memory.user);
  return pack(posted.command, entries, posted.next, payload,
              [&](std::byte* to, const std::byte* from, std::size_t bytes) {
                if (posted.is_checked && !memory.mapped.holds_in_host_memory(from, bytes))
                  return detail::copy_if_there(to, from, bytes);
                std::memcpy(to, from, bytes);
                return true;
              });
}

void RemoteSender::send_entry(NetworkMessage message, PostedCommands& ring, PostedCommand& posted,
                              const Command& entry) {
  ++posted.next;
  message.command = message_of(entry, entry, false);
  send_rows(message, ring, posted, entry);
}

void RemoteSender::send_command(const NetworkMessage& message, PostedCommand& posted,
                                std::span<const std::byte> payload, StagedBytes staged) {
  const bool borrows = staged == nullptr && !payload.empty();
  bool reusable = true;
  posted.last = peers_.send(posted.command.peer, message, payload, borrows ? message.request : no_token,
                            std::move(staged), reusable);
  if (borrows && !reusable) ++posted.sending;
  keys_.add_footprint(message.command);
}

/// The message gets its number at once and is sent when its payload has been read: the target restores the order.
void RemoteSender::send_staged(NetworkMessage message, PostedCommands& ring, PostedCommand& posted, const Rows& rows) {
  const std::uint32_t to = posted.command.peer;
  message.number = peers_[to].sent + 1;
  const bool is_known = puts_rows(posted.command) && posted.command.is_signed;
  const auto send = [this, to, message](StagedBytes bytes, std::size_t count) {
    sent(message.request);
    if (peers_[to].is_lost()) return;
    const std::span<const std::byte> payload(bytes.get(), count);
    static_cast<void>(peers_.transmit(to, message, payload, no_token, std::move(bytes)));
  };
  std::unique_lock in_use(peers_.memory()->user);
  const char* const refused = peers_.staging()->read(rows, is_known, send);
  in_use.unlock();
  if (refused != nullptr) return refuse_own(ring, posted, refused);
  ++peers_[to].sent;
  ++posted.sending;
  posted.last = message.number;
  keys_.add_footprint(message.command);
}

/// The message gets its number at once and is sent when its data are in place: the target restores the order.
void RemoteSender::send_by_key(NetworkMessage message, PostedCommand& posted, std::span<const std::byte> data,
                               PeerKey& key) {
  const std::uint32_t peer = posted.command.peer;
  RemotePeer& to = peers_[peer];
  message.kind = MessageKind::placed;
  message.number = ++to.sent;
  if (message.may_wait != 0) to.last_deferred = message.number;
  posted.last = message.number;
  ++posted.sending;
  if (keys_.put(peer, message, data, key)) placed(static_cast<int>(peer), message.number, true);
  keys_.add_footprint(message.command);
}

/// A get by key has no message: nothing that was sent before uses the same memory, and its poster waits for it before
/// anything that comes later.
void RemoteSender::send_get(const NetworkMessage& message, PostedCommands& ring, PostedCommand& posted,
                            const Command& part) {
  const std::uint32_t peer = posted.command.peer;
  PeerKey* const key = ring.queue() == nullptr && !posted.is_checked ? keys_.key_for(peer, part) : nullptr;
  if (key == nullptr) return send_command(message, posted);
  const std::uint64_t token = message.request | std::uint64_t{message.piece} << 32;
  ++posted.sending;
  if (keys_.get(part, token, *key)) got(static_cast<int>(peer), token, true);
}

void RemoteSender::got(int peer, std::uint64_t token, bool is_there) {
  const auto request = static_cast<std::uint32_t>(token);
  PostedCommand* const posted = posted_of(request);
  if (posted == nullptr) return;
  --posted->sending;
  keys_.release(static_cast<std::uint32_t>(peer), piece_of(posted->command, cut_for(*posted), token >> 32).remote);
  if (is_there) end_answer(request, *posted, 0);
}

void RemoteSender::placed(int peer, std::uint64_t number, bool is_there) {
  const auto to = static_cast<std::uint32_t>(peer);
  const std::optional<NetworkMessage> message = keys_.take_put(to, number);
  if (!message) return;
  sent(message->request);
  if (is_there && !peers_[to].is_lost()) static_cast<void>(peers_.transmit(to, *message, {}, no_token));
  keys_.release(to, message->command.remote);
}

PostedCommands* RemoteSender::ring_of(std::uint32_t request) {
  const std::uint32_t number = request >> index_bits;
  const auto found =
      std::lower_bound(rings_.begin(), rings_.end(), number,
                       [](const NumberedRing& ring, std::uint32_t sought) { return ring.number < sought; });
  return found == rings_.end() || found->number != number ? nullptr : found->commands.get();
}

bool RemoteSender::is_closed(std::uint32_t request) {
  return request >> index_bits < next_ring_ && ring_of(request) == nullptr;
}

PostedCommand* RemoteSender::posted_of(std::uint32_t request) {
  PostedCommands* const ring = ring_of(request);
  return ring == nullptr ? nullptr : ring->find(request & ((1u << index_bits) - 1));
}

void RemoteSender::sent(std::uint64_t token) {
  if (token == no_token) return;
  if (PostedCommand* const posted = posted_of(static_cast<std::uint32_t>(token)); posted != nullptr) --posted->sending;
}

/// Commands of queues and of GPUs do not report that a caller waits for them, so their acknowledgements may not wait.
/// The target of a signal usually answers soon, and its answer carries the acknowledgement. A caller that waited after
/// one message is likely to wait after the next: see RemotePeer::is_waited_for.
void RemoteSender::let_acknowledgement_wait(NetworkMessage& message, const PostedCommands& ring,
                                            const PostedCommand& posted) {
  if (ring.queue() != nullptr || peers_.staging() != nullptr || peers_.memory()->client.device.is_gpu()) return;
  message.may_wait = std::exchange(peers_[posted.command.peer].is_waited_for, false) ? 0 : 1;
}

/// After a failure no command completes any more: waits for commands end when the world is aborted, some of them only
/// when the sources are no longer read.
void RemoteSender::advance() {
  const auto done = [this](std::uint32_t rank) {
    return peers_[rank].is_gone ? peers_[rank].sent : peers_[rank].confirm();
  };
  for (const auto& [number, ring] : rings_)
    if (!ring->is_idle()) ring->advance(done, !peers_.has_failed());
}

void RemoteSender::take_refusal(const NetworkMessage& message, std::span<const std::byte> payload) {
  ++peers_[message.from].refusals_taken;
  if (is_closed(message.request)) return;
  PostedCommand* const posted = posted_of(message.request);
  if (posted == nullptr || posted->command.peer != message.from)
    return peers_.fail(fmt::format("rank {} refuses what nobody posted: {}", message.from, text_in(payload)));
  if (PostedCommands& ring = *ring_of(message.request); ring.queue() != nullptr) {
    if (posted->awaited != 0) --posted->awaited, --peers_[message.from].unanswered;
    return ring.refuse(*posted, fmt::format("{} (rank {} says so)", text_in(payload), message.from));
  }
  posted->is_refused = true;
  peers_.fail(fmt::format("rank {}'s engine refused: {} of rank {}: {}", message.from, text_of(posted->command),
                          peers_.plan().rank, text_in(payload)));
}

Rows RemoteSender::rows_of_answer(const NetworkMessage& message) {
  const PostedCommand* const posted = posted_of(message.request);
  const bool is_direct =
      posted != nullptr && gets_rows(posted->command) && message.piece < posted->pieces && !posted->is_checked;
  return is_direct ? rows_of_piece(*posted, message.piece) : Rows{};
}

void RemoteSender::take_answer(const NetworkMessage& message, Payload payload) {
  if (is_closed(message.request)) return;
  PostedCommand* const posted = posted_of(message.request);
  const bool is_data = message.kind == MessageKind::data;
  if (posted == nullptr || posted->awaited == 0 || posted->command.peer != message.from ||
      is_data != gets_rows(posted->command))
    return peers_.fail(fmt::format("rank {} answers what nobody asked", message.from));
  if (!is_data || payload.is_placed) return end_answer(message.request, *posted, message.value);
  if (message.piece >= posted->pieces)
    return peers_.fail(fmt::format("rank {} answers with piece {} of {}", message.from, message.piece, posted->pieces));
  const Rows rows = rows_of_piece(*posted, message.piece);
  if (rows.bytes() != payload.bytes.size())
    return peers_.fail(fmt::format("rank {} answers with {} bytes, {} were asked for", message.from,
                                   payload.bytes.size(), rows.bytes()));
  if (peers_.staging() != nullptr && !peers_.staging()->is_for_cpu_now(rows))
    return stage_answer(message, *posted, rows, std::move(payload));
  if (!unpack(rows, posted->is_checked, payload.bytes))
    refuse_own(*ring_of(message.request), *posted, "memory of its poster is not there");
  end_answer(message.request, *posted, message.value);
}

void RemoteSender::end_answer(std::uint32_t request, PostedCommand& posted, std::uint64_t value) {
  --peers_[posted.command.peer].unanswered;
  if (--posted.awaited == 0) ring_of(request)->answer(posted, value);
}

void RemoteSender::stage_answer(const NetworkMessage& message, PostedCommand& posted, const Rows& rows,
                                Payload payload) {
  RemotePeer& from = peers_[message.from];
  ++from.in_device;
  const auto end = [this, &from, message, sequence = posted.command.sequence](std::uint64_t) {
    PostedCommand* const asked = posted_of(message.request);
    const bool is_awaited = asked != nullptr && asked->command.sequence == sequence && asked->awaited != 0;
    if (is_awaited)
      end_answer(message.request, *asked, message.value);  // if not, the world has ended, and the poster's wait too
    from.end_in_device(message.number);
  };
  StagedBytes bytes = staged_bytes(*peers_.staging(), std::move(payload));
  std::unique_lock in_use(peers_.memory()->user);
  const char* const refused = peers_.staging()->write(rows, false, std::move(bytes), end);
  in_use.unlock();
  if (refused == nullptr) return;
  --from.in_device;
  PostedCommands& ring = *ring_of(message.request);
  refuse_own(ring, posted, refused);
  if (ring.queue() != nullptr) end_answer(message.request, posted, message.value);
}

bool RemoteSender::reads_sources_for(int peer) const {
  return std::any_of(rings_.begin(), rings_.end(), [to = static_cast<std::uint32_t>(peer)](const auto& ring) {
    return !ring.commands->is_idle() && ring.commands->sources_of(to) != 0;
  });
}

bool RemoteSender::is_settled(int peer) const {
  const RemotePeer& rank = peers_[static_cast<std::uint32_t>(peer)];
  return rank.is_lost() || (rank.acknowledged == rank.sent && rank.unanswered == 0 && !has_posted());
}

void RemoteSender::end_lost() {
  for (const auto& [number, ring] : rings_)
    if (!ring->is_idle()) ring->end_answers([this](std::uint32_t rank) { return peers_[rank].is_lost(); });
  advance();
}

}  // namespace beeline
