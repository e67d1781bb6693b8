// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/staged_channel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "beeline/device/wait.hpp"
#include "beeline/transport/staged.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

struct StagedChannel::Implementation {
  Implementation(World& world, std::size_t chunk_bytes, std::uint32_t slots);

  /// One ring as a sender or receiver of this rank sees it.
  [[nodiscard]] StagedRing ring(int sender, int receiver) const;
  void check_peer(int peer, int least) const;

  World& world;
  const std::size_t chunk_bytes;
  const std::uint32_t slots;
  const Segment& segment;
  SymmetricArray<PaddedWord> published, consumed;  ///< [ranks] chunks, from or to each peer
  std::unique_ptr<Stream> out, in;
  std::vector<StagedSender> senders;      ///< [ranks]
  std::vector<StagedReceiver> receivers;  ///< [ranks]
};

StagedChannel::Implementation::Implementation(World& on, std::size_t chunk, std::uint32_t count)
    : world(on), chunk_bytes(chunk == 0 ? on.config().chunk_bytes : chunk), slots(count),
      segment(on.create_segment(MemoryKind::pinned, detail::array_bytes(static_cast<std::size_t>(on.size()),
                                                                        detail::array_bytes(count, chunk_bytes)))),
      published(on, static_cast<std::size_t>(on.size()), Heap::pinned),
      consumed(on, static_cast<std::size_t>(on.size()), Heap::pinned), out(on.make_stream()), in(on.make_stream()) {
  for (int peer = 0; peer < world.size(); ++peer) {
    senders.emplace_back(*out, ring(world.rank(), peer));
    receivers.emplace_back(*in, ring(peer, world.rank()));
  }
}

StagedRing StagedChannel::Implementation::ring(int sender, int receiver) const {
  std::byte* rings = segment.parts[static_cast<std::size_t>(receiver)].address;
  return {rings + static_cast<std::size_t>(sender) * slots * chunk_bytes, &published.at(receiver)[sender].value,
          &consumed.at(sender)[receiver].value, chunk_bytes, slots};
}

void StagedChannel::Implementation::check_peer(int peer, int least) const {
  require(peer >= least && peer < world.size(), Status::invalid_argument,
          fmt::format("peer {} of a world of {}", peer, world.size()));
}

StagedChannel::StagedChannel(World& world, std::size_t chunk_bytes, std::uint32_t slots) {
  require(slots > 0, Status::invalid_argument, "a staged channel needs at least one slot");
  implementation_ = std::make_unique<Implementation>(world, chunk_bytes, slots);
}

StagedChannel::~StagedChannel() {
  World& world = implementation_->world;
  const std::uint32_t segment = implementation_->segment.id;
  try {
    implementation_.reset();
    if (!world.failed() && std::uncaught_exceptions() == 0) world.destroy_segment(segment);
  } catch (const std::exception& error) {
    log(LogLevel::warning, error.what(), world.rank());
  }
}

Status StagedChannel::send(const void* source, std::size_t bytes, int peer, Timeout timeout) {
  implementation_->check_peer(peer, 0);
  return exchange(source, peer, nullptr, -1, bytes, timeout);
}

Status StagedChannel::receive(void* destination, std::size_t bytes, int peer, Timeout timeout) {
  implementation_->check_peer(peer, 0);
  return exchange(nullptr, -1, destination, peer, bytes, timeout);
}

Status StagedChannel::exchange(const void* source, int to, void* destination, int from, std::size_t bytes,
                               Timeout timeout) {
  Implementation& channel = *implementation_;
  channel.check_peer(to, -1);
  channel.check_peer(from, -1);
  StagedSender* sender = to < 0 ? nullptr : &channel.senders[static_cast<std::size_t>(to)];
  StagedReceiver* receiver = from < 0 ? nullptr : &channel.receivers[static_cast<std::size_t>(from)];
  if (sender != nullptr) sender->begin_or_continue(source, bytes);
  if (receiver != nullptr) receiver->begin_or_continue(destination, bytes);
  const auto finished = [&] { return (sender ? sender->finished() : 0) + (receiver ? receiver->finished() : 0); };
  const auto over = [&] { return (!sender || sender->over()) && (!receiver || receiver->over()); };
  const bool receiving = receiver != nullptr;
  const std::uint64_t start = machine::clock_ns();
  while (!over()) {  // each chunk has the whole deadline: long messages may take longer than that
    const std::uint64_t before = finished(), elapsed = machine::clock_ns() - start;
    const Awaited awaited{receiving ? Operation::staged_receive : Operation::staged_send,
                          static_cast<std::uint32_t>(receiving ? from : to), before, before + 1};
    const Timeout left{timeout.ns - std::min(timeout.ns, elapsed)};
    const Status status = poll_until(channel.world.host_context(), awaited, left, [&](std::uint64_t& observed) {
      if (sender != nullptr) sender->progress(static_cast<const std::byte*>(source));
      if (receiver != nullptr) receiver->progress(static_cast<std::byte*>(destination));
      observed = finished();
      return observed != before;
    });
    if (status == Status::timeout) return status;
    if (status != Status::ok) channel.world.implementation().fail(status, channel.world.host_context().team);
  }
  if (sender != nullptr) sender->end_call();
  if (receiver != nullptr) receiver->end_call();
  return Status::ok;
}

}  // namespace beeline
