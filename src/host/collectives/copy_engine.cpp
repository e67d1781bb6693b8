// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/copy_engine.hpp"

#include <algorithm>

#include "beeline/collectives/words.hpp"
#include "host/collectives/launchers.hpp"
#include "host/collectives/round_kernels.hpp"

namespace beeline::detail {

namespace {

/// More streams than these keep no further engines busy.
constexpr std::uint32_t most_streams = 4;
/// Chunks below this cost more for being started than they gain by overlap; above, their first and last are not hidden.
constexpr std::size_t least_chunk_bytes = std::size_t{1} << 20, most_chunk_bytes = std::size_t{16} << 20;
constexpr std::size_t chunks_at_least = 4;

}  // namespace

EngineAllreduce::EngineAllreduce(World& world, const Context& context, const CollectiveChannel& channel)
    : world_(world), context_(context), channel_(channel) {
  const std::uint32_t others = std::max(1u, context.size - 1);
  const std::size_t memory = std::size_t{channel.lanes} * 2 * channel.staging_bytes;
  slot_bytes_ = std::min(most_chunk_bytes, memory / 2 / others) & ~std::size_t{255};
  for (std::uint32_t i = 0; i < std::min(others, most_streams); ++i) {
    fetching_.push_back(world.make_stream());
    sending_.push_back(world.make_stream());
    for (auto& events : fetched_) events.push_back(fetching_.back()->make_event());
    sent_.push_back(sending_.back()->make_event());
  }
  for (auto& event : combined_) event = world.stream().make_event();
  met_ = world.stream().make_event();
}

std::byte* EngineAllreduce::slot(unsigned half, std::uint32_t other) const {
  const std::uint32_t others = std::max(1u, context_.size - 1);
  return channel_.staging + (std::size_t{half} * others + other) * slot_bytes_;
}

void EngineAllreduce::follow(const std::vector<std::unique_ptr<Stream>>& streams, Event& event) {
  for (const auto& stream : streams) stream->wait_event(event);
}

void EngineAllreduce::fetch(const EngineCall& call, const Chunk& chunk) {
  for (std::uint32_t distance = 1; distance < context_.size; ++distance) {
    const std::uint32_t peer = (context_.rank + distance) % context_.size;
    Stream& stream = *fetching_[(distance - 1) % fetching_.size()];
    stream.copy(slot(chunk.half, peer < context_.rank ? peer : peer - 1), context_.at(call.source + chunk.offset, peer),
                chunk.bytes);
  }
  for (std::size_t i = 0; i < fetching_.size(); ++i) fetching_[i]->record(*fetched_[chunk.half][i]);
}

void EngineAllreduce::combine(const EngineCall& call, const Chunk& chunk) {
  for (const auto& event : fetched_[chunk.half]) call.stream->wait_event(*event);
  const LocalReduction work{.destination = call.destination + chunk.offset,
                            .own = call.source + chunk.offset,
                            .others = slot(chunk.half, 0),
                            .stride_bytes = slot_bytes_,
                            .count = chunk.bytes / bytes_of(call.call.type),
                            .reduction = call.call.reduction,
                            .rank = context_.rank,
                            .members = context_.size};
  const unsigned blocks = world_.device().is_gpu() ? 128 : 1;
  local_reduce_launcher(call.call.type)(
      world_, {.blocks = blocks, .threads = collective_threads, .stream = call.stream, .context = &context_}, work);
  call.stream->record(*combined_[chunk.half]);
}

void EngineAllreduce::send(const EngineCall& call, const Chunk& chunk) {
  follow(sending_, *combined_[chunk.half]);
  for (std::uint32_t distance = 1; distance < context_.size; ++distance) {
    const std::uint32_t peer = (context_.rank + distance) % context_.size;
    sending_[(distance - 1) % sending_.size()]->copy(context_.at(call.destination + chunk.offset, peer),
                                                     call.destination + chunk.offset, chunk.bytes);
  }
}

void EngineAllreduce::run(const EngineCall& call) {
  const LaunchOptions one_block{.threads = 64, .waits = true, .stream = call.stream, .context = &context_};
  launch_meeting(world_, one_block, channel_, call.call, call.destination, call.source);
  call.stream->record(*met_);
  follow(fetching_, *met_);
  const std::size_t element = bytes_of(call.call.type);
  const Range part = part_of(call.call.count, context_.size, context_.rank, 256 / element);
  const std::size_t end = (part.first + part.count) * element;
  const std::size_t wanted = part.count * element / chunks_at_least & ~std::size_t{255};
  const std::size_t each = std::clamp(wanted, std::min(least_chunk_bytes, slot_bytes_), slot_bytes_);
  unsigned index = 0;
  for (std::size_t offset = part.first * element; offset < end; offset += each, ++index) {
    const Chunk chunk{offset, std::min(each, end - offset), index % 2};
    if (index >= 2) follow(fetching_, *combined_[chunk.half]);  // its slots have been read
    fetch(call, chunk);
    combine(call, chunk);
    send(call, chunk);
  }
  for (std::size_t i = 0; i < sending_.size(); ++i) {
    sending_[i]->record(*sent_[i]);
    call.stream->wait_event(*sent_[i]);
  }
  launch_parting(world_, one_block, channel_);
}

}  // namespace beeline::detail
