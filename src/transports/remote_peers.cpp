// SPDX-License-Identifier: Apache-2.0
#include "transports/remote_peers.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "beeline/device/impl/machine.hpp"

namespace beeline {

namespace {

static_assert(std::endian::native == std::endian::little, "messages are little-endian");

/// Most completed messages of a rank without an acknowledgement, while there is always other work.
constexpr std::uint64_t most_unreported = 64;
/// The longest time that an acknowledgement waits for a message that can carry it. A ping-pong is quicker, and rings of
/// commands are long enough for this time.
constexpr std::uint64_t longest_unreported_ns = 200'000;
/// The same for a message whose acknowledgement is wanted at once, if this rank has lately sent a message of its own
/// that soon after such an acknowledgement. In a ping-pong the acknowledgement would delay the answer at both ends.
constexpr std::uint64_t soon_ns = 20'000;
/// Number of acknowledgements that do not wait after both ranks have waited for each other's.
constexpr int sent_alone = 200;

StagedBytes copy_of(std::span<const std::byte> bytes) {
  StagedBytes copy = make_staged(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  return copy;
}

}  // namespace

RemotePeers::RemotePeers(const NetworkPlan& plan) : plan_(plan), peers_(plan.node_of.size()) {
  const int own = plan.node_of[static_cast<std::size_t>(plan.rank)];
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) peers_[rank].is_remote = plan.node_of[rank] != own;
}

std::vector<int> RemotePeers::silent() const {
  std::vector<int> found;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank)
    if (peers_[rank].is_remote && !peers_[rank].has_greeted) found.push_back(static_cast<int>(rank));
  return found;
}

DeviceKind RemotePeers::kind_of(const RemotePeer& peer, std::span<const std::byte> memory) {
  if (!peer.takes_device_memory || memory.empty() || !memory_) return DeviceKind::host;
  const bool is_gpu = memory_->mapped.holds(memory.data(), memory.size()) &&
                      !memory_->mapped.holds_in_host_memory(memory.data(), memory.size());
  return is_gpu ? DeviceKind::gpu : DeviceKind::host;
}

/// UCX would copy a shorter payload at once, and wait for the copy.
bool RemotePeers::is_for_transport(const RemotePeer& peer, const Rows& rows) {
  constexpr std::size_t least_bytes = std::size_t{256} << 10;  // UCX announces these over TCP (tcp_settings)
  return peer.takes_device_memory && rows.rows != 0 && rows.is_whole() && rows.bytes() >= least_bytes &&
         kind_of(peer, {rows.first, rows.bytes()}) == DeviceKind::gpu;
}

NetworkMessage RemotePeers::make_message(MessageKind kind) const {
  NetworkMessage message{};
  message.world = plan_.world;
  message.kind = kind;
  message.from = static_cast<std::uint32_t>(plan_.rank);
  return message;
}

/// Acknowledges only here, when the message is sent: a command may still be refused after its message is made.
bool RemotePeers::transmit(std::uint32_t to, NetworkMessage message, std::span<const std::byte> payload,
                           std::uint64_t token, StagedBytes staged) {
  RemotePeer& peer = peers_[to];
  if (peer.acknowledged_at_ns != 0 && message.kind != MessageKind::acknowledge) note_following(peer);
  message.acknowledged = peer.reported = peer.completed;
  message.refusals = peer.refusals;
  peer.unreported_since_ns = 0;
  return peer.worker->send(static_cast<int>(to), message, payload, token, std::move(staged), kind_of(peer, payload));
}

std::uint64_t RemotePeers::send(std::uint32_t to, NetworkMessage message, std::span<const std::byte> payload,
                                std::uint64_t token, StagedBytes staged, bool& reusable) {
  RemotePeer& peer = peers_[to];
  message.number = ++peer.sent;
  if (message.may_wait != 0) peer.last_deferred = message.number;
  // A message to a lost rank is never done: waits for it end when the world is aborted, or by the deadline.
  reusable = peer.is_lost() || transmit(to, message, payload, token, std::move(staged));
  return message.number;
}

void RemotePeers::notify(std::uint32_t to, MessageKind kind, std::uint64_t value) {
  NetworkMessage message = make_message(kind);
  message.value = value;
  static_cast<void>(transmit(to, message, {}, no_token));
}

RemotePeers::Reply& RemotePeers::reply(const NetworkMessage& to, MessageKind kind, std::uint64_t value) {
  Reply& answer = reply_with(to.from, kind, value);
  answer.message.request = to.request, answer.message.piece = to.piece;
  return answer;
}

RemotePeers::Reply& RemotePeers::reply_with(std::uint32_t to, MessageKind kind, std::uint64_t value,
                                            std::span<const std::byte> payload) {
  Reply& answer = replies_.emplace_back(Reply{to, make_message(kind), {}, {}});
  answer.message.value = value;
  if (payload.empty()) return answer;
  answer.staged = copy_of(payload);
  answer.payload = {answer.staged.get(), payload.size()};
  return answer;
}

bool RemotePeers::send_replies() {
  if (replies_.empty()) return false;
  sending_.clear();
  std::swap(replies_, sending_);  // sending may add replies
  for (Reply& each : sending_) send(each.to, each.message, each.payload, std::move(each.staged));
  return true;
}

bool RemotePeers::acknowledge(bool idle) {
  bool is_any_left = false;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    RemotePeer& each = peers_[rank];
    const std::uint64_t unreported = each.completed - each.reported;
    if (unreported == 0 || each.is_lost()) continue;
    const bool answers = each.asked_for > each.reported && each.asked_for <= each.completed;
    if (unreported < most_unreported && !answers && (!idle || !is_due(each))) {
      is_any_left = true;
      continue;
    }
    if (each.awaited > each.reported) {
      each.has_waited = each.follows_soon > 0;
      each.acknowledged_at_ns = machine::clock_ns();
    }
    notify(rank, MessageKind::acknowledge, 0);
  }
  return is_any_left;
}

/// Called when a message is sent, the first after an acknowledgement. If this acknowledgement has waited, and the
/// message follows soon, the peer or this rank was probably waiting for it.
void RemotePeers::note_following(RemotePeer& peer) {
  const bool is_soon = machine::clock_ns() - std::exchange(peer.acknowledged_at_ns, 0) < soon_ns;
  if (!is_soon)
    peer.follows_soon = std::min(peer.follows_soon, 0);
  else
    peer.follows_soon = peer.has_waited ? -sent_alone : std::min(peer.follows_soon + 1, 1);
}

bool RemotePeers::is_due(RemotePeer& peer) {
  const bool is_awaited = peer.awaited > peer.reported;
  if (peer.asked_for > peer.reported || (is_awaited && peer.follows_soon <= 0)) return true;
  const std::uint64_t now = machine::clock_ns();
  if (peer.unreported_since_ns == 0) peer.unreported_since_ns = now;
  return now - peer.unreported_since_ns >= (is_awaited ? soon_ns : longest_unreported_ns);
}

void RemotePeers::acknowledge_all() {
  for (std::uint32_t rank = 0; rank < size(); ++rank)
    if (peers_[rank].completed != peers_[rank].reported && !peers_[rank].is_lost())
      notify(rank, MessageKind::acknowledge, 0);
}

void RemotePeers::ask() {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    RemotePeer& each = peers_[rank];
    each.is_waited_for = each.acknowledged < each.sent;
    if (each.last_deferred <= std::max(each.acknowledged, each.asked) || each.is_lost()) continue;
    each.asked = each.last_deferred;
    notify(rank, MessageKind::ask, each.asked);
  }
}

void RemotePeers::fail(const std::string& text) {
  if (std::exchange(has_failed_, true)) return;
  failure_ = text;
  has_reports_ = true;
}

void RemotePeers::failed(const char* reason) noexcept {
  try {
    fail(reason);
  } catch (const std::exception&) {
    has_failed_ = true;  // no memory for the reason's text
  }
}

void RemotePeers::forget_failures() {
  has_failed_ = false;
  failure_.clear();
  aborts_.clear();
}

void RemotePeers::lose(int peer, const std::string& reason) {
  RemotePeer& lost = peers_[static_cast<std::size_t>(peer)];
  if (lost.is_lost()) return;
  lost.lost = reason;
  lost.lost_at_ns = machine::clock_ns();
  has_reports_ = true;
}

std::vector<std::pair<int, std::string>> RemotePeers::take_lost(std::uint64_t before_ns) {
  std::vector<std::pair<int, std::string>> found;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    RemotePeer& each = peers_[rank];
    if (each.lost_at_ns == 0 || each.lost_at_ns >= before_ns) continue;
    found.emplace_back(static_cast<int>(rank), each.lost);
    each.lost_at_ns = 0;
  }
  return found;
}

void RemotePeers::end_reports() {
  has_reports_ = std::any_of(peers_.begin(), peers_.end(), [](const RemotePeer& each) { return each.lost_at_ns != 0; });
}

void RemotePeers::send_abort(int peer, const RemoteAbort& abort) {
  const auto to = static_cast<std::uint32_t>(peer);
  if (!peers_[to].is_remote || peers_[to].is_lost()) return;
  NetworkMessage message = make_message(MessageKind::abort);
  message.request = abort.team, message.value = abort.word;
  const auto cause = std::as_bytes(std::span(abort.cause));
  StagedBytes staged = copy_of(cause);
  const std::span<const std::byte> payload(staged.get(), cause.size());
  send(to, message, payload, std::move(staged));
}

void RemotePeers::take_abort(const NetworkMessage& message, std::span<const std::byte> payload) {
  if (message.request >= max_teams) return;
  aborts_.push_back({message.request, message.value, text_in(payload)});
  has_reports_ = true;
}

}  // namespace beeline
