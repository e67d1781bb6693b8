// SPDX-License-Identifier: Apache-2.0
#include "network/far_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "beeline/core/error.hpp"
#include "beeline/device/impl/machine.hpp"
#include "control/command_check.hpp"

namespace beeline {

namespace {

static_assert(std::endian::native == std::endian::little, "messages are little-endian");

/// Commands of a ring that are sent before others have their turn.
constexpr std::size_t batch = 64;
/// Messages of a rank that are done before it is told so, where there is always something else to do.
constexpr std::uint64_t untold_messages = 64;
/// The longest that an acknowledgement waits for a message which it can go with: a ping-pong is quicker, and rings of
/// commands are long enough.
constexpr std::uint64_t longest_untold_ns = 200'000;

/// UCX announces messages from some 8 KiB on, and their data follow when the target has answered. Over TCP that takes
/// 80 us longer than to send them at once, and is quicker from 256 KiB on only. To copy what is sent at once into UCX's
/// buffers takes longer than to name it where it lies, from some 16 KiB on. Each segment takes a system call: UCX's own
/// are of 64 KiB where it receives and of 8 KiB where it copies, as UCX 1.22 does with all that it announces.
constexpr UcxSetting tcp_settings[] = {
    {"RNDV_THRESH", "256k"}, {"ZCOPY_THRESH", "16k"}, {"TCP_RX_SEG_SIZE", "160k"}, {"TCP_TX_SEG_SIZE", "160k"}};

/// UCX has idle connections probed after 10 s, and gives one up where some probes, 2 s apart, are not answered. 512
/// ranks on one machine, whose connections are all probed at once, lost each other while they met, and do not without
/// probes. A rank that vanishes is missed by the rendezvous, and by whoever waits for it.
constexpr UcxSetting without_probes = {"TCP_KEEPIDLE", "inf"};

std::vector<UcxSetting> settings_for(const NetworkPlan& plan) {
  std::vector<UcxSetting> settings;
  if (plan.is_tcp_alone) settings.assign(std::begin(tcp_settings), std::end(tcp_settings));
  if (plan.is_tcp_alone && plan.node_of.size() > max_node_ranks) settings.push_back(without_probes);
  // UCX would take the machine's shared memory.
  const bool has_gpu_memory = plan.is_gpu && plan.gpu_payloads == GpuPayloads::ucx;
  if (plan.is_split) settings.push_back({"TLS", has_gpu_memory ? "tcp,cuda_copy" : "tcp"});
  if (!plan.net_devices.empty()) settings.push_back({"NET_DEVICES", plan.net_devices.c_str()});
  if (plan.prefers_ipv6) settings.push_back({"TCP_AF_PRIO", "inet6,inet"});
  return settings;
}

}  // namespace

FarExchange::FarExchange(const NetworkPlan& plan)
    : plan_(plan), ranks_(plan.node_of.size()), worker_(*this, settings_for(plan), may_have_keys(plan)) {
  require(!gives_ucx_gpu_memory() || worker_.has_gpu_memory(), Status::unavailable,
          fmt::format("BEELINE_GPU_PAYLOADS=ucx, and UCX {} has no transport for GPU memory here: install one that has "
                      "cuda_copy (PyPI's libucx-cu13, with BEELINE_UCX), name it in UCX_TLS if that is set, or leave "
                      "payloads staged",
                      ucx().version));
  const int own = plan.node_of[static_cast<std::size_t>(plan.rank)];
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank].is_far = plan.node_of[rank] != own;
}

void FarExchange::connect(const std::vector<std::span<const std::byte>>& addresses,
                          const std::function<std::string(int)>& devices_to) {
  for (std::size_t distance = 1; distance < ranks_.size(); ++distance) {
    const std::size_t rank =
        (static_cast<std::size_t>(plan_.rank) + distance) % ranks_.size();  // not all to one at once
    if (!ranks_[rank].is_far) continue;
    worker_.connect(static_cast<int>(rank), addresses[rank], devices_to(static_cast<int>(rank)));
    tell(static_cast<int>(rank), MessageKind::hello, 0);
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
  if (plan_.is_staged[static_cast<std::size_t>(plan_.rank)]) staging_ = std::make_unique<Staging>(client);
  for (CommandRing* ring : client.rings) rings_.try_emplace(next_ring_++, *ring);
}

void FarExchange::open_queue(CarriedQueue& queue) {
  require(next_ring_ < most_rings, Status::no_resource,
          fmt::format("command queues to other nodes: {} have been made, and no more can be", next_ring_));
  rings_.try_emplace(next_ring_++, queue);
}

void FarExchange::close_queue(const CarriedQueue& queue) {
  std::erase_if(rings_, [&queue](const auto& ring) { return ring.second.queue() == &queue; });
}

NetworkMessage FarExchange::make_message(MessageKind kind) const {
  NetworkMessage message{};
  message.world = plan_.world;
  message.kind = kind;
  message.from = static_cast<std::uint32_t>(plan_.rank);
  return message;
}

/// Only what goes acknowledges: a command may be refused once its message is made.
bool FarExchange::transmit(int to, NetworkMessage message, std::span<const std::byte> payload, std::uint64_t token,
                           StagedBytes staged) {
  FarRank& rank = far(static_cast<std::uint32_t>(to));
  message.acknowledged = rank.told = rank.in_place;
  message.refusals = rank.refusals;
  rank.untold_since_ns = 0;
  return worker_.send(to, message, payload, token, std::move(staged), kind_of(payload));
}

std::uint64_t FarExchange::send(int to, NetworkMessage message, std::span<const std::byte> payload, std::uint64_t token,
                                StagedBytes staged, bool& reusable) {
  FarRank& rank = far(static_cast<std::uint32_t>(to));
  message.number = ++rank.sent;
  if (message.may_wait != 0) rank.last_deferred = message.number;
  // What is lost is never done: who waits for it ends with the world, or by the deadline.
  reusable = rank.is_lost() || transmit(to, message, payload, token, std::move(staged));
  return message.number;
}

// What this rank's rings hold.

bool FarExchange::has_posted() const {
  return std::any_of(rings_.begin(), rings_.end(), [this](const auto& each) {
    const PostedCommand* const begun = each.second.begun();
    return begun != nullptr ? may_send(*begun) : each.second.has_next();
  });
}

bool FarExchange::send_posted() {
  bool any = false;
  for (auto& [number, ring] : rings_) {
    for (std::size_t count = 0; count < batch; ++count) {
      PostedCommand* const posted = next_of(ring);
      if (posted == nullptr) break;
      if (!posted->is_sent()) send_piece(number, ring, *posted);
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
    if (posted != nullptr) begin(ring, *posted);
  }
  return posted == nullptr || posted->is_sent() || may_send(*posted) ? posted : nullptr;
}

bool FarExchange::may_send(const PostedCommand& posted) const {
  return ranks_[posted.command.peer].has_room() &&
         (staging_ == nullptr || !puts_rows(posted.command) || staging_->may_read());
}

void FarExchange::begin(PostedCommands& ring, PostedCommand& posted) {
  if (ring.has_refused()) return;  // it takes no messages
  const Command& command = posted.command;
  const bool is_far = command.peer < ranks_.size() && far(command.peer).is_far;
  if (!is_far || command.verb == Verb::copy || command.verb == Verb::trigger)
    return fail(fmt::format("rank {}'s engine cannot carry a {}", plan_.rank, text_of(command)));
  const bool moves = puts_rows(command) || command.verb == Verb::get;
  const Rows rows = local_rows(without_signal(command));
  posted.is_checked =
      moves && ring.queue() != nullptr && staging_ == nullptr && !memory_->holds_for_good(rows.first, rows.extent());
  posted.most_bytes = most_bytes(ring, posted);
  posted.pieces = moves ? cut_for(posted).messages() : 1;
}

/// What a queue names may be unmapped meanwhile, unless it is a heap's: it goes by way of a message. At the target no
/// memory is unmapped that a put writes to.
std::uint64_t FarExchange::most_bytes(const PostedCommands& ring, const PostedCommand& posted) const {
  const Command& command = posted.command;
  const bool gets = ring.queue() != nullptr && command.verb == Verb::get;
  if (posted.is_checked || (gets && !lies_in_heap(client_->context, command.remote, 1))) return most_packed_bytes;
  return staging_ != nullptr || plan_.is_staged[command.peer] ? staging_bytes : ~std::uint64_t{0};
}

void FarExchange::refuse_own(PostedCommands& ring, PostedCommand& posted, const std::string& reason) {
  if (ring.queue() != nullptr) return ring.refuse(posted, reason);
  posted.is_refused = true;
  fail(fmt::format("rank {}'s engine refused: {}: {}", plan_.rank, text_of(posted.command), reason));
}

StagedBytes FarExchange::packed(const Rows& rows, bool is_checked) {
  StagedBytes bytes = make_staged(rows.bytes());
  const std::lock_guard in_use(*memory_user_);
  if (!is_checked || memory_->holds(rows.first, rows.extent()))
    rows.pack(bytes.get());
  else if (!rows.pack_if_there(bytes.get()))
    bytes.reset();
  return bytes;
}

bool FarExchange::unpack(const Rows& rows, bool is_checked, std::span<const std::byte> bytes) {
  const std::lock_guard in_use(*memory_user_);
  if (is_checked && !memory_->holds(rows.first, rows.extent())) return rows.unpack_if_there(bytes.data());
  rows.unpack(bytes.data());
  return true;
}

void FarExchange::send_piece(std::uint32_t number, PostedCommands& ring, PostedCommand& posted) {
  const std::uint32_t request = number << index_bits | ring.index_of(posted);
  const Command& whole = posted.command;
  const std::uint64_t piece = posted.next++;
  NetworkMessage message = make_message(MessageKind::command);
  message.request = request, message.piece = static_cast<std::uint32_t>(piece);
  if (acknowledgement_may_wait(ring, posted))
    message.may_wait = std::exchange(far(whole.peer).is_waited_for, false) ? 0 : 1;
  message.command = whole;
  if (whole.answers || whole.verb == Verb::get) ++posted.awaited, ++far(whole.peer).unanswered;
  if (!puts_rows(whole) && whole.verb != Verb::get) return send_command(message, posted, {}, {});
  const Command moved = without_signal(whole), part = piece_of(moved, cut_for(posted), piece);
  const Rows rows = local_rows(part);
  message.command = message_of(part, whole, posted.is_sent());
  if (whole.verb == Verb::get) return send_command(message, posted, {}, {});
  const bool is_ucx_source = is_for_ucx(rows) && memory_->holds_for_good(rows.first, rows.extent());
  if (staging_ != nullptr && !is_ucx_source && !staging_->is_for_cpu(rows))
    return send_staged(message, ring, posted, rows);
  if (rows.is_whole() && !posted.is_checked) {
    const std::span<const std::byte> data(rows.first, rows.bytes());
    if (FarKey* const key = ring.queue() == nullptr ? key_for(whole.peer, part) : nullptr; key != nullptr) {
      send_by_key(message, posted, data, *key);
      return add_footprint(message);
    }
    return send_command(message, posted, data, {});
  }
  StagedBytes bytes = packed(rows, posted.is_checked);
  if (bytes == nullptr) return refuse_own(ring, posted, "memory of its poster is not there");
  const std::span<const std::byte> payload(bytes.get(), rows.bytes());
  send_command(message, posted, payload, std::move(bytes));
}

void FarExchange::send_command(const NetworkMessage& message, PostedCommand& posted, std::span<const std::byte> payload,
                               StagedBytes staged) {
  const bool borrows = staged == nullptr && !payload.empty();
  bool reusable = true;
  posted.last = send(static_cast<int>(posted.command.peer), message, payload, borrows ? message.request : no_token,
                     std::move(staged), reusable);
  if (borrows && !reusable) ++posted.sending;
  add_footprint(message);
}

/// The message has its number at once, and goes when its payload has been read: its target puts it into its place among
/// those that overtake it.
void FarExchange::send_staged(NetworkMessage message, PostedCommands& ring, PostedCommand& posted, const Rows& rows) {
  const int to = static_cast<int>(posted.command.peer);
  message.number = far(posted.command.peer).sent + 1;
  const char* const refused = staging_->read(rows, [this, to, message](StagedBytes bytes, std::size_t count) {
    sent(message.request);
    if (is_lost(to)) return;
    const std::span<const std::byte> payload(bytes.get(), count);
    static_cast<void>(transmit(to, message, payload, no_token, std::move(bytes)));
  });
  if (refused != nullptr) return refuse_own(ring, posted, refused);
  ++far(posted.command.peer).sent;
  ++posted.sending;
  posted.last = message.number;
}

DeviceKind FarExchange::kind_of(std::span<const std::byte> memory) {
  if (!gives_ucx_gpu_memory() || memory.empty() || !memory_) return DeviceKind::host;
  const bool is_gpu =
      memory_->holds(memory.data(), memory.size()) && !memory_->holds_in_host_memory(memory.data(), memory.size());
  return is_gpu ? DeviceKind::gpu : DeviceKind::host;
}

/// Shorter ones UCX would copy at once, and wait for the copy.
bool FarExchange::is_for_ucx(const Rows& rows) {
  constexpr std::size_t least_bytes = std::size_t{256} << 10;  // that UCX announces over TCP: see the settings above
  return gives_ucx_gpu_memory() && rows.rows != 0 && rows.is_whole() && rows.bytes() >= least_bytes &&
         kind_of({rows.first, rows.bytes()}) == DeviceKind::gpu;
}

PostedCommands* FarExchange::ring_of(std::uint32_t request) {
  const auto found = rings_.find(request >> index_bits);
  return found == rings_.end() ? nullptr : &found->second;
}

PostedCommand* FarExchange::posted_of(std::uint32_t request) {
  PostedCommands* const ring = ring_of(request);
  return ring == nullptr ? nullptr : ring->find(request & ((1u << index_bits) - 1));
}

void FarExchange::sent(std::uint64_t token) {
  if (token == no_token) return;
  if (PostedCommand* const posted = posted_of(static_cast<std::uint32_t>(token)); posted != nullptr) --posted->sending;
}

bool FarExchange::send_replies() {
  if (replies_.empty()) return false;
  for (Reply& each : std::exchange(replies_, {})) {
    NetworkMessage message = make_message(each.message.kind);
    message.request = each.message.request, message.piece = each.message.piece, message.value = each.message.value;
    bool reusable = true;
    static_cast<void>(send(each.to, message, each.payload, no_token, std::move(each.staged), reusable));
  }
  return true;
}

// Rounds.

bool FarExchange::turn() {
  bool any = send_posted();
  any = worker_.progress() || any;
  if (staging_ != nullptr) any = staging_->turn() || any;
  if (staging_ != nullptr || std::exchange(is_put_off_, false))
    for (FarRank& rank : ranks_) do_kept(rank);
  any = send_replies() || any;
  acknowledge(!any);
  advance();
  return any;
}

void FarExchange::acknowledge(bool idle) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    FarRank& each = ranks_[rank];
    const std::uint64_t untold = each.in_place - each.told;
    if (untold == 0 || each.is_lost()) continue;
    if (untold < untold_messages && (!idle || !is_due(each))) continue;
    tell(static_cast<int>(rank), MessageKind::acknowledge, 0);
  }
}

bool FarExchange::is_due(FarRank& rank) {
  if (rank.awaited > rank.told) return true;
  const std::uint64_t now = machine::clock_ns();
  if (rank.untold_since_ns == 0) rank.untold_since_ns = now;
  return now - rank.untold_since_ns >= longest_untold_ns;
}

void FarExchange::acknowledge_all() {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_[rank].in_place != ranks_[rank].told && !ranks_[rank].is_lost())
      tell(static_cast<int>(rank), MessageKind::acknowledge, 0);
}

void FarExchange::ask() {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    FarRank& each = ranks_[rank];
    each.is_waited_for = each.acknowledged < each.sent;
    if (each.last_deferred <= std::max(each.acknowledged, each.asked) || each.is_lost()) continue;
    each.asked = each.last_deferred;
    tell(static_cast<int>(rank), MessageKind::ask, each.asked);
  }
}

void FarExchange::tell(int to, MessageKind kind, std::uint64_t value) {
  NetworkMessage message = make_message(kind);
  message.value = value;
  static_cast<void>(transmit(to, message, {}, no_token));
}

/// Of commands of queues, and from GPUs, nobody says when somebody waits for them. Who signals hears from its target
/// soon, most of the time. Who has waited after the last message is likely to do so after this one.
bool FarExchange::acknowledgement_may_wait(const PostedCommands& ring, const PostedCommand& posted) const {
  return ring.queue() == nullptr && staging_ == nullptr && !client_->device.is_gpu() && has_signal(posted.command);
}

/// Nothing counts as in place once something was refused: who waits ends with the world.
void FarExchange::advance() {
  if (has_failed_) return;
  const auto done = [this](std::uint32_t rank) { return far(rank).is_gone ? far(rank).sent : far(rank).confirm(); };
  for (auto& [number, ring] : rings_)
    if (!ring.is_idle()) ring.advance(done);
}

void FarExchange::send_abort(int peer, const FarAbort& abort) {
  FarRank& to = far(static_cast<std::uint32_t>(peer));
  if (!to.is_far || to.is_lost()) return;
  NetworkMessage message = make_message(MessageKind::abort);
  message.request = abort.team, message.value = abort.word;
  StagedBytes staged = make_staged(abort.cause.size());
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
  for (auto& [number, ring] : rings_)
    if (!ring.is_idle()) ring.end_answers([this](std::uint32_t rank) { return far(rank).is_lost(); });
  advance();
}

bool FarExchange::reads_sources_for(int peer) const {
  const auto to = static_cast<std::uint32_t>(peer);
  return std::any_of(rings_.begin(), rings_.end(),
                     [to](const auto& ring) { return !ring.second.is_idle() && ring.second.sources_of(to) != 0; });
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
