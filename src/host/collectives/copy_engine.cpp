// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/copy_engine.hpp"

#include <algorithm>

#include "beeline/device/wait.hpp"
#include "host/collectives/launchers.hpp"
#include "host/collectives/round_kernels.hpp"

namespace beeline::detail {

namespace {

/// Chunks in the scratch memory: while one is combined, the next comes.
constexpr std::size_t slots = 2;
/// Above, what a copy takes to start no longer counts.
constexpr std::size_t most_chunk_bytes = std::size_t{64} << 20;
constexpr unsigned combining_blocks = 64;
constexpr std::size_t alignment = 256;

std::size_t others_of(const Context& context) { return std::max(1u, context.size - 1); }

std::size_t whole_lines(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

void copy_after_meeting(World& world, const Context& context, Stream& stream, std::byte* to, const std::byte* from,
                        std::size_t bytes) {
  if (world.device().is_gpu()) return world.copy(to, from, bytes, stream);
  stream.enqueue([&world, context, to, from, bytes] {
    if (read_abort_word(context) == 0) world.copy(to, from, bytes);
  });
}

std::size_t EngineAllreduce::wanted_bytes(const Context& context) {
  return slots * others_of(context) * most_chunk_bytes;
}

std::size_t EngineAllreduce::least_bytes(const Context& context) { return slots * others_of(context) * alignment; }

EngineAllreduce::EngineAllreduce(World& world, const Context& context, const CollectiveChannel& channel,
                                 std::span<std::byte> scratch)
    : world_(world), context_(context), channel_(channel), scratch_(scratch.data()),
      chunk_bytes_(std::min(most_chunk_bytes, scratch.size() / slots / others_of(context)) / alignment * alignment),
      copying_(world.make_stream()), combining_(world.make_stream(StreamPriority::high)),
      called_(copying_->make_event()), copied_(copying_->make_event()), met_(combining_->make_event()),
      combined_(combining_->make_event()) {}

EngineAllreduce::Piece EngineAllreduce::piece(const EngineCall& call, const Chunk& chunk, std::uint32_t owner) const {
  const std::size_t element = bytes_of(call.call.type);
  const Range part = part_of(call.call.count, context_.size, owner, alignment / element);
  const std::size_t bytes = part.count * element, first = std::min(chunk.first, bytes);
  return {part.first * element + first, std::min(chunk.bytes, bytes - first)};
}

std::byte* EngineAllreduce::place(const Chunk& chunk, std::uint32_t owner, std::uint32_t sender) const {
  const std::size_t other = sender < owner ? sender : sender - 1;
  return scratch_ + other * slots * chunk_bytes_ + chunk.place;
}

void EngineAllreduce::send(const EngineCall& call, const Chunk& chunk, std::uint32_t distance) {
  const std::uint32_t peer = peer_ahead(context_, distance);
  const Piece theirs = piece(call, chunk, peer);
  copy_after_meeting(world_, context_, *copying_, context_.at(place(chunk, peer, context_.rank), peer),
                     call.source + theirs.offset, theirs.bytes);
}

void EngineAllreduce::scatter(const EngineCall& call, const Chunk& chunk) {
  for (std::uint32_t distance = 1; distance < context_.size; ++distance) send(call, chunk, distance);
}

void EngineAllreduce::combine(const EngineCall& call, const Chunk& chunk) {
  const Piece mine = piece(call, chunk, context_.rank);
  const CollectedVectors others{
      .first = place(chunk, context_.size, 0), .stride = slots * chunk_bytes_, .count = context_.size - 1};
  const LocalReduction work{.destination = call.destination + mine.offset,
                            .vectors = {.own = call.source + mine.offset, .others = others, .rank = context_.rank},
                            .count = mine.bytes / bytes_of(call.call.type),
                            .reduction = call.call.reduction};
  const unsigned blocks = world_.device().is_gpu() ? combining_blocks : 1;
  local_reduce_launcher(call.call.type)(
      world_, {.blocks = blocks, .threads = collective_threads, .stream = combining_.get(), .context = &context_},
      work);
  combining_->record(*combined_);
}

void EngineAllreduce::return_to(const EngineCall& call, const Chunk& chunk, std::uint32_t distance) {
  const Piece mine = piece(call, chunk, context_.rank);
  copy_after_meeting(world_, context_, *copying_,
                     context_.at(call.destination + mine.offset, peer_ahead(context_, distance)),
                     call.destination + mine.offset, mine.bytes);
}

LaunchOptions EngineAllreduce::meeting_on(Stream& stream) const {
  return {.threads = 64,
          .waits = true,
          .stream = &stream,
          .context = &context_,
          .turns = channel_.states,
          .name = name(CollectiveOperation::allreduce)};
}

void EngineAllreduce::meet() {
  copying_->record(*copied_);
  combining_->wait_event(*copied_);
  launch_round(world_, meeting_on(*combining_), channel_);
  combining_->record(*met_);
}

void EngineAllreduce::run_halves(const EngineCall& call, std::size_t part) {
  const std::size_t middle = std::min(part, whole_lines(part / 2));
  const Chunk whole{0, part, 0}, early{0, middle, 0}, late{middle, part - middle, middle};
  const std::uint32_t others = context_.size - 1;
  for (std::uint32_t distance = 1; distance < others; ++distance) send(call, whole, distance);
  send(call, early, others);
  meet();
  combine(call, early);
  send(call, late, others);
  meet();
  copying_->wait_event(*combined_);
  combine(call, late);
  return_to(call, early, 1);
  copying_->wait_event(*combined_);
  return_to(call, late, 1);
  for (std::uint32_t distance = 2; distance <= others; ++distance) return_to(call, whole, distance);
}

void EngineAllreduce::run_chunks(const EngineCall& call, std::size_t part) {
  const std::size_t count = (part + chunk_bytes_ - 1) / chunk_bytes_, each = whole_lines((part + count - 1) / count);
  const auto chunk = [&](std::size_t i) {
    const std::size_t first = std::min(part, i * each);
    return Chunk{first, std::min(each, part - first), i % slots * chunk_bytes_};
  };
  // Who is ahead of the others would stay ahead, and copy to where another copies: they wait for each other with every
  // chunk. Between two there is nobody to be in the way of.
  const bool in_step = context_.size > 2;
  scatter(call, chunk(0));
  meet();
  for (std::size_t i = 0; i < count; ++i) {
    combine(call, chunk(i));
    if (i + 1 < count) {
      // Its place was read by the combination before this one, after which all have met.
      if (!in_step && i + 1 >= slots) copying_->wait_event(*met_);
      scatter(call, chunk(i + 1));
      meet();
      if (in_step) copying_->wait_event(*met_);
    }
    copying_->wait_event(*combined_);
    for (std::uint32_t distance = 1; distance < context_.size; ++distance) return_to(call, chunk(i), distance);
  }
}

void EngineAllreduce::exchange(const EngineCall& call, std::size_t part) {
  call.stream->record(*called_);
  combining_->wait_event(*called_);
  copying_->wait_event(*called_);
  if (context_.size == 1)
    combine(call, {0, part, 0});
  else
    part <= chunk_bytes_ ? run_halves(call, part) : run_chunks(call, part);
  copying_->wait_event(*combined_);
  copying_->record(*copied_);
  call.stream->wait_event(*copied_);
}

void EngineAllreduce::run(const EngineCall& call) {
  // The caller's stream has the first kernel and the last: who waits for it hears of what failed between them.
  launch_meeting(world_, meeting_on(*call.stream), channel_, call.call, call.destination, call.source);
  // The first part is the longest.
  const std::size_t element = bytes_of(call.call.type);
  const std::size_t part = part_of(call.call.count, context_.size, 0, alignment / element).count * element;
  if (part != 0) exchange(call, part);
  launch_round(world_, meeting_on(*call.stream), channel_);
}

}  // namespace beeline::detail
