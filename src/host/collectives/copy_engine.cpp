// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/copy_engine.hpp"

#include <algorithm>

#include "host/collectives/launchers.hpp"
#include "host/collectives/round_kernels.hpp"

namespace beeline::detail {

namespace {

/// Chunks on their way: while one is combined, the next comes, and the one after that may begin.
constexpr std::size_t slots = 3;
/// Below, the starts of copies cost too much; above, memory. From trials on 4 x H200, of which there is no record.
constexpr std::size_t least_chunk_bytes = std::size_t{1} << 20, most_chunk_bytes = std::size_t{64} << 20;
/// Chunks of a part, so that combining is hidden behind copies.
constexpr std::size_t chunks_at_least = 2;
constexpr unsigned combining_blocks = 128;
constexpr std::size_t alignment = 256;

std::size_t others_of(const Context& context) { return std::max(1u, context.size - 1); }

std::size_t whole_lines(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

std::size_t EngineAllreduce::wanted_bytes(const Context& context) {
  return slots * others_of(context) * most_chunk_bytes;
}

std::size_t EngineAllreduce::least_bytes(const Context& context) { return slots * others_of(context) * alignment; }

EngineAllreduce::EngineAllreduce(World& world, const Context& context, const CollectiveChannel& channel,
                                 std::span<std::byte> scratch)
    : world_(world), context_(context), channel_(channel), scratch_(scratch.data()),
      slot_bytes_(std::min(most_chunk_bytes, scratch.size() / slots / others_of(context)) / alignment * alignment),
      copying_(world.make_stream()), copied_(copying_->make_event()), met_(world.stream().make_event()),
      combined_(world.stream().make_event()) {}

std::vector<EngineAllreduce::Chunk> EngineAllreduce::chunks_of(const EngineCall& call) const {
  const std::size_t element = bytes_of(call.call.type);
  // The first part is the longest.
  const std::size_t part = part_of(call.call.count, context_.size, 0, alignment / element).count * element;
  const std::size_t wanted = std::max(whole_lines(part / chunks_at_least), least_chunk_bytes);
  const std::size_t each = std::min(wanted, slot_bytes_);
  std::vector<Chunk> chunks;
  for (std::size_t first = 0; first < part; first += each)
    chunks.push_back({first, std::min(each, part - first), static_cast<unsigned>(chunks.size() % slots)});
  return chunks;
}

EngineAllreduce::Piece EngineAllreduce::piece(const EngineCall& call, const Chunk& chunk, std::uint32_t owner) const {
  const std::size_t element = bytes_of(call.call.type);
  const Range part = part_of(call.call.count, context_.size, owner, alignment / element);
  const std::size_t bytes = part.count * element, first = std::min(chunk.first, bytes);
  return {part.first * element + first, std::min(chunk.bytes, bytes - first)};
}

std::byte* EngineAllreduce::slot(const Chunk& chunk, std::uint32_t owner, std::uint32_t sender) const {
  const std::size_t other = sender < owner ? sender : sender - 1;
  return scratch_ + (chunk.slot * others_of(context_) + other) * slot_bytes_;
}

void EngineAllreduce::scatter(const EngineCall& call, const Chunk& chunk) {
  for (std::uint32_t distance = 1; distance < context_.size; ++distance) {
    const std::uint32_t peer = peer_ahead(context_, distance);
    const Piece theirs = piece(call, chunk, peer);
    copying_->copy(context_.at(slot(chunk, peer, context_.rank), peer), call.source + theirs.offset, theirs.bytes);
  }
  copying_->record(*copied_);
}

void EngineAllreduce::combine(const EngineCall& call, const Chunk& chunk) {
  meet(call);  // all have sent this chunk's parts, and have combined the chunk before
  const Piece mine = piece(call, chunk, context_.rank);
  const LocalReduction work{
      .destination = call.destination + mine.offset,
      .vectors = {.own = call.source + mine.offset,
                  .others = {.first = slot(chunk, context_.size, 0), .stride = slot_bytes_, .count = context_.size - 1},
                  .rank = context_.rank},
      .count = mine.bytes / bytes_of(call.call.type),
      .reduction = call.call.reduction};
  const unsigned blocks = world_.device().is_gpu() ? combining_blocks : 1;
  local_reduce_launcher(call.call.type)(
      world_, {.blocks = blocks, .threads = collective_threads, .stream = call.stream, .context = &context_}, work);
  call.stream->record(*combined_);
}

void EngineAllreduce::cast(const EngineCall& call, const Chunk& chunk) {
  copying_->wait_event(*combined_);
  const Piece mine = piece(call, chunk, context_.rank);
  for (std::uint32_t distance = 1; distance < context_.size; ++distance)
    copying_->copy(context_.at(call.destination + mine.offset, peer_ahead(context_, distance)),
                   call.destination + mine.offset, mine.bytes);
}

void EngineAllreduce::meet(const EngineCall& call) {
  call.stream->wait_event(*copied_);
  launch_round(world_, {.threads = 64, .waits = true, .stream = call.stream, .context = &context_}, channel_);
}

void EngineAllreduce::run(const EngineCall& call) {
  launch_meeting(world_, {.threads = 64, .waits = true, .stream = call.stream, .context = &context_}, channel_,
                 call.call, call.destination, call.source);
  call.stream->record(*met_);
  copying_->wait_event(*met_);
  const std::vector<Chunk> chunks = chunks_of(call);
  if (!chunks.empty()) scatter(call, chunks[0]);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    combine(call, chunks[i]);
    // While that goes on. The next chunk's slot was read by the combination two chunks ago, for which all have met.
    if (i + 1 < chunks.size()) scatter(call, chunks[i + 1]);
    cast(call, chunks[i]);
  }
  copying_->record(*copied_);
  meet(call);
}

}  // namespace beeline::detail
