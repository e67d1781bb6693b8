// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "beeline/collectives/impl/message_link.hpp"
#include "beeline/selection/preferences.hpp"
#include "host/channel_agreement.hpp"
#include "host/collectives/checks.hpp"
#include "host/messages/message_kernels.hpp"
#include "host/messages/pair_messages.hpp"
#include "host/world/exchange.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"

namespace beeline {

namespace {

using detail::any_host_rank;
using detail::selection::MessageSizes;

const MessageSizes& sizes_of(const World& world) {
  return any_host_rank(world) ? detail::selection::messages_of_hosts : detail::selection::messages_of_gpus;
}

constexpr std::size_t whole_grains(std::size_t bytes, std::size_t grain) { return (bytes + grain - 1) / grain * grain; }

/// Number of sessions per peer for concurrent messages with all other ranks in both directions, also if ranks share a
/// GPU. So a rank's memory does not depend on the number of ranks.
unsigned default_message_sessions(Team& team) {
  const World& world = team.world();
  if (world_part<Routes>(world).needs_engine(team)) return team.size() > static_cast<int>(max_node_ranks) ? 1 : 2;
  if (any_host_rank(world)) return 2;
  const unsigned sessions = std::clamp(64u / static_cast<unsigned>(team.size()), 4u, 32u);
  return std::max(1u, sessions / static_cast<unsigned>(world.ranks_on_device()));
}

/// Collective. Fills in defaults for the options that the caller left open.
MessageOptions complete(Team& team, MessageOptions options) {
  const World& world = team.world();
  const unsigned sessions = detail::least_of_all(team, "Messages", default_message_sessions(team));
  if (options.sessions == 0) options.sessions = sessions;
  const MessageSizes& sizes = sizes_of(world);
  if (options.eager_bytes == 0) options.eager_bytes = options.sessions * sizes.session_eager;
  if (options.depth == 0) options.depth = 16;
  const std::size_t share = sizes.all_chunks / static_cast<std::size_t>(team.size()) / 256 * 256;
  if (options.chunk_bytes == 0) options.chunk_bytes = std::clamp(share, sizes.least_chunk, sizes.most_chunk);
  return options;
}

void check(const MessageOptions& options) {
  require(options.sessions <= detail::most_message_slices, Status::invalid_argument,
          fmt::format("{} sessions of a message channel: at most {}", options.sessions, detail::most_message_slices));
  require(options.eager_bytes <= std::size_t{1} << 28, Status::invalid_argument,
          fmt::format("eager_bytes {}: at most 2^28", options.eager_bytes));
  require(options.depth >= 2 && (options.depth & (options.depth - 1)) == 0 && options.depth <= 1u << 16,
          Status::invalid_argument,
          fmt::format("depth {} of a message channel: a power of two, 2 to 2^16", options.depth));
  require(options.chunk_bytes <= std::size_t{1} << 32 && options.chunk_bytes % 256 == 0, Status::invalid_argument,
          fmt::format("chunk_bytes {}: multiples of 256 up to 2^32", options.chunk_bytes));
}

/// Collective. Throws the same error on all ranks if kernels of a rank do not reach the memory of another. Data between
/// a GPU rank and a host rank pass through host memory, which both reach.
void check_reach(Team& team) {
  struct Reach {
    int rank, unreached;
  };
  constexpr int none = -1;
  World& world = team.world();
  const Routes& routes = world_part<Routes>(world);
  Reach mine{world.rank(), none};
  for (int member = 0; member < team.size(); ++member) {
    const int peer = team.world_rank(member);
    if (!routes.to_gpu_of(peer).is_direct() && world.device(peer).is_gpu() == world.device().is_gpu())
      mine.unreached = peer;
  }
  for (const auto& theirs : detail::values_in(team, "Messages", mine))
    require(!theirs || theirs->unreached == none, Status::unavailable,
            fmt::format("kernels of rank {} do not reach the memory of rank {}: StagedChannel serves instead",
                        theirs ? theirs->rank : none, theirs ? theirs->unreached : none));
}

/// Collective.
MessageOptions agreed(Team& team, const MessageOptions& options) {
  const MessageOptions all = complete(team, options);
  const Route route = world_part<Routes>(team.world()).to_members(team, "Messages");
  detail::require_same_options(team, "Messages", "messages", all);
  check(all);
  if (route.is_direct()) check_reach(team);
  return all;
}

/// Offsets of the parts of a channel's memory.
struct MessageLayout {
  std::size_t rings, staging, bytes;
};

MessageLayout message_layout(const MessageChannel& channel, int ranks) {
  const std::size_t links = std::size_t{channel.sessions} * static_cast<std::size_t>(ranks);
  MessageLayout layout{};
  layout.rings = links * sizeof(MessageState);
  const std::size_t ring_bytes = std::size_t{channel.depth} * channel.slot_pairs * sizeof(machine::PacketPair);
  layout.staging = whole_grains(layout.rings + links * ring_bytes, 256);
  layout.bytes = layout.staging + detail::array_bytes(links, message_chunks * channel.chunk_bytes);
  return layout;
}

/// The states, then the pair channels of the sessions.
MessageLayout layout_across_nodes(const MessageChannel& channel, int ranks) {
  const std::size_t states = std::size_t{channel.sessions} * static_cast<std::size_t>(ranks) * sizeof(MessageState);
  return {states, 0, states + channel.sessions * sizeof(detail::PairChannel)};
}

/// A channel with its sizes; its addresses are set later. A session's slot holds its share of the longest eager
/// message, or the whole message of one block.
MessageChannel channel_of(const World& world, const MessageOptions& options) {
  MessageChannel channel{};
  channel.sessions = options.sessions;
  channel.depth = options.depth;
  channel.eager_end = options.eager_bytes + 1;
  channel.chunk_bytes = options.chunk_bytes;
  const std::size_t share = (options.eager_bytes + options.sessions - 1) / options.sessions;
  const std::size_t slot = std::max(share, std::min(options.eager_bytes, sizes_of(world).eager_block));
  channel.slot_pairs = static_cast<std::uint32_t>(1 + whole_grains(slot, 16) / 8);
  return channel;
}

}  // namespace

class Messages::Implementation {
 public:
  /// Collective.
  Implementation(Team& members, const MessageOptions& options)
      : team(members), world(team.world()), channel(channel_of(world, options)),
        layout(world_part<Routes>(world).needs_engine(team) ? layout_across_nodes(channel, team.size())
                                                            : message_layout(channel, team.size())),
        memory(team, layout.bytes, world.mixed() ? Heap::pinned : Heap::symmetric) {
    channel.states = reinterpret_cast<MessageState*>(memory.data());
    if (world_part<Routes>(world).needs_engine(team)) {
      go_across_nodes(options);
      return;
    }
    channel.rings = reinterpret_cast<machine::PacketPair*>(memory.data() + layout.rings);
    channel.staging = memory.data() + layout.staging;
    if (options.first_message != 0) start_at(options.first_message);
    team.barrier();
  }

  [[nodiscard]] const Context& context() const { return team.context(); }

  void check_peer(int peer) const {
    if (peer < 0 || peer >= static_cast<int>(context().size))
      throw Error(Status::invalid_argument, fmt::format("peer {} of a team of {}", peer, context().size));
  }

  /// Checks one end of a message.
  [[nodiscard]] detail::MessageEnd end_of(const char* name, const void* data, std::size_t count, ElementType type,
                                          int peer, const MessageCall& call) const {
    const std::size_t bytes = detail::checked_bytes(count, 1, type);
    if (bytes > detail::most_message_bytes)
      throw Error(Status::invalid_argument,
                  fmt::format("a message of {} bytes: at most {}", bytes, detail::most_message_bytes));
    require(call.tag <= most_message_tag, Status::invalid_argument,
            fmt::format("tag {} of a message: at most {}", call.tag, most_message_tag));
    detail::check_vector(team.host_context(), name, data, bytes, type);
    check_peer(peer);
    return {static_cast<std::byte*>(const_cast<void*>(data)),
            bytes,
            static_cast<std::uint32_t>(peer),
            blocks_for(bytes, call),
            call.tag,
            detail::message_elements(type)};
  }

  [[nodiscard]] unsigned blocks_for(std::size_t bytes, const MessageCall& call) const {
    if (call.blocks != 0) return call.blocks;
    const MessageSizes& sizes = sizes_of(world);
    const std::size_t block_bytes = bytes < channel.eager_end ? sizes.eager_block : sizes.block;
    const std::size_t wanted = bytes == 0 ? 1 : (bytes - 1) / block_bytes + 1;
    return static_cast<unsigned>(std::min<std::size_t>(wanted, channel.sessions));
  }
  [[nodiscard]] bool is_eager(std::size_t bytes, unsigned blocks) const { return channel.is_eager(bytes, blocks); }

  /// Whether a message from `peer` has been announced. The first session shows it, since every message uses that
  /// session.
  [[nodiscard]] bool is_announced(int peer) const {
    if (pairs != nullptr)
      return detail::PairLinks(team.host_context(), pairs->channel()).next(static_cast<std::uint32_t>(peer)) != nullptr;
    const detail::MessageLink link{context(), channel, static_cast<std::uint32_t>(peer), 0};
    const std::uint32_t sequence = link.own_state()->in.sequence + 1;
    return detail::has_flags(machine::load_packets(link.slot(link.in_ring(), sequence)), sequence);
  }

  /// Launches the kernel of one or both ends; an end without blocks is left out. `call`: the kernel's name in errors.
  void launch(const char* call, const detail::MessageEnd& sent, const detail::MessageEnd& received, Stream* stream) {
    for (const detail::MessageEnd* end : {&sent, &received})
      if (end->blocks > channel.sessions)
        throw Error(Status::invalid_argument,
                    fmt::format("{} blocks for a message on a channel of {} sessions (MessageOptions::sessions)",
                                end->blocks, channel.sessions));
    if (pairs != nullptr)
      return detail::launch_pair_messages(team, {.waits = true, .stream = stream, .name = call},
                                          pairs->channels().data(), sent, received, lanes.get());
    const LaunchOptions options{.blocks = sent.blocks + received.blocks,
                                .threads = std::max(threads_for(sent), threads_for(received)),
                                .waits = true,
                                .stream = stream,
                                .name = call};
    detail::launch_messages(team, options, channel, sent, received);
  }

  Team& team;
  World& world;
  MessageChannel channel;  ///< of kernels in one node, and of calls
  MessageLayout layout;
  SymmetricArray<std::byte> memory;
  MessageChannel across{};                    ///< of kernels if members are on several nodes
  std::unique_ptr<detail::PairMemory> pairs;  ///< instead of the channel if members are on several nodes
  std::unique_ptr<detail::CpuLanes> lanes;    ///< for `pairs` on a GPU rank

 private:
  /// Collective. The links and lanes of a team with members on several nodes.
  void go_across_nodes(const MessageOptions& options) {
    pairs = std::make_unique<detail::PairMemory>(team, detail::pair_sizes_for(team, options));
    if (world.device().is_gpu()) lanes = std::make_unique<detail::CpuLanes>(team);
    across = channel;
    across.eager_end = 0, across.across = reinterpret_cast<detail::PairChannel*>(memory.data() + layout.rings);
    const auto channels = pairs->channels().last(options.sessions);
    world.copy(memory.data() + layout.rings, channels.data(), channels.size_bytes());
    team.barrier();
  }

  /// Number of threads: one for each word of an eager message, since threads without work make others wait.
  [[nodiscard]] unsigned threads_for(const detail::MessageEnd& end) const {
    if (end.blocks == 0) return 1;
    if (!is_eager(end.bytes, end.blocks)) return detail::message_threads;
    const std::size_t words = end.bytes / end.blocks / 8 + 1;
    return static_cast<unsigned>(std::clamp<std::size_t>(whole_grains(words, 32), 32, detail::message_threads));
  }

  /// Flags start with the number before the first message's; none of the next 2^32 - 1 messages has this number.
  void start_at(std::uint32_t first) {
    const std::uint64_t stale = std::uint64_t{first} << 32;
    const std::vector<machine::PacketPair> unsent((layout.staging - layout.rings) / sizeof(machine::PacketPair),
                                                  {stale, stale});
    MessageState state{};
    state.out = {.sequence = first, .credit = first, .handshakes = first, .is_in_progress = 0, .chunks = 0, .done = 0};
    state.in = state.out;
    state.consumed = first;
    for (machine::PacketPair& answer : state.answer) answer = {stale, stale};
    const std::vector<MessageState> states(layout.rings / sizeof(MessageState), state);
    world.copy(channel.rings, unsent.data(), unsent.size() * sizeof(machine::PacketPair));
    world.copy(channel.states, states.data(), states.size() * sizeof(MessageState));
  }
};

Messages::Messages(Team& team, const MessageOptions& options)
    : implementation_(new Implementation(team, agreed(team, options)), detail::DeleteWithTeam{team.life()}) {}

Messages::~Messages() = default;

const MessageChannel& Messages::channel() const {
  return implementation_->pairs == nullptr ? implementation_->channel : implementation_->across;
}

Team& Messages::team() const { return implementation_->team; }

bool Messages::probe(int peer) const {
  implementation_->check_peer(peer);
  require(!implementation_->world.device().is_gpu() || implementation_->world.mixed(), Status::unavailable,
          "probe: messages of GPUs wait in their memory, which the CPU does not poll");
  return implementation_->is_announced(peer);
}

MessageCall Messages::choice(std::size_t bytes, const MessageCall& call) const {
  return {call.stream, implementation_->blocks_for(bytes, call), call.tag};
}

bool Messages::is_eager(std::size_t bytes, const MessageCall& call) const {
  return implementation_->is_eager(bytes, implementation_->blocks_for(bytes, call));
}

void Messages::send_on_stream(const void* source, std::size_t count, ElementType type, int peer,
                              const MessageCall& call) {
  const detail::MessageEnd sent = implementation_->end_of("source", source, count, type, peer, call);
  if (sent.peer == implementation_->context().rank && !implementation_->is_eager(sent.bytes, sent.blocks))
    throw Error(Status::invalid_argument,
                fmt::format("rank {} sends {} bytes to itself, more than the {} of an eager message: it would wait for "
                            "its receiver, which comes behind it; send_receive_on_stream does both",
                            sent.peer, sent.bytes, implementation_->channel.eager_end - 1));
  implementation_->launch("send", sent, {}, call.stream);
}

void Messages::receive_on_stream(void* destination, std::size_t count, ElementType type, int peer,
                                 const MessageCall& call) {
  const detail::MessageEnd received = implementation_->end_of("destination", destination, count, type, peer, call);
  implementation_->launch("receive", {}, received, call.stream);
}

void Messages::send_receive_on_stream(const SentMessage& sent, const ReceivedMessage& received, ElementType type,
                                      const MessageCall& call) {
  const detail::MessageEnd out = implementation_->end_of("source", sent.source, sent.count, type, sent.peer, call);
  const detail::MessageEnd in =
      implementation_->end_of("destination", received.destination, received.count, type, received.peer, call);
  detail::check_apart({in.data, in.bytes}, {out.data, out.bytes});
  implementation_->launch("send_receive", out, in, call.stream);
}

}  // namespace beeline
