// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/copy_engine.hpp"

#include <algorithm>

#include "beeline/device/wait.hpp"
#include "host/collectives/launchers.hpp"
#include "host/collectives/round_kernels.hpp"

namespace beeline::detail {

namespace {

/// Chunks of either kind in the scratch memory: while one is combined, or copied to its destination, the next comes.
constexpr std::size_t slots = 2, kinds = 2;  // CopyEngines::all_slots
/// Above, what a copy takes to start no longer counts; below, it counts for more than other algorithms lose.
constexpr std::size_t most_chunk_bytes = std::size_t{64} << 20, useful_chunk_bytes = std::size_t{8} << 20;
/// Lengths of a row of chunks beside each other, so many to each but the last two: a chunk's copy to its destination
/// takes about as long as the next one's return.
constexpr std::size_t common_length = 24, last_lengths[] = {8, 3};
constexpr unsigned combining_blocks = 64;
constexpr std::size_t alignment = 256;

std::size_t scratch_bytes(std::size_t members, std::size_t chunk_bytes) {
  return kinds * slots * std::max<std::size_t>(1, members - 1) * chunk_bytes;
}

constexpr std::size_t quotient_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

std::size_t whole_lines(std::size_t bytes) { return quotient_up(bytes, alignment) * alignment; }

}  // namespace

void copy_after_meeting(World& world, const Context& context, Stream& stream, std::byte* to, const std::byte* from,
                        std::size_t bytes) {
  if (world.device().is_gpu()) return world.copy(to, from, bytes, stream);
  stream.enqueue([&world, context, to, from, bytes] {
    if (read_abort_word(context) == 0) world.copy(to, from, bytes);
  });
}

std::size_t CopyEngines::most_bytes(std::size_t members) { return scratch_bytes(members, most_chunk_bytes); }

std::size_t CopyEngines::useful_bytes(std::size_t members) { return scratch_bytes(members, useful_chunk_bytes); }

std::size_t CopyEngines::least_bytes(std::size_t members) { return scratch_bytes(members, alignment); }

CopyEngines::CopyEngines(World& world, const Context& context, const CollectiveChannel& channel,
                         std::span<std::byte> scratch)
    : world_(world), context_(context), channel_(channel), scratch_(scratch.data()),
      chunk_bytes_(std::min(most_chunk_bytes, scratch.size() / scratch_bytes(context.size, 1)) / alignment * alignment),
      copying_(world.make_stream()), combining_(world.make_stream(StreamPriority::high)),
      called_(copying_->make_event()), copied_(copying_->make_event()), returned_(copying_->make_event()),
      met_(combining_->make_event()), combined_(combining_->make_event()) {
  for (auto& event : arrived_) event = combining_->make_event();
}

CopyEngines::Piece CopyEngines::piece(const EngineCall& call, const Chunk& chunk, std::uint32_t owner) const {
  const std::size_t element = bytes_of(call.call.type);
  const Range part = part_of(call.call.count, context_.size, owner, alignment / element);
  const std::size_t bytes = part.count * element, first = std::min(chunk.first, bytes);
  return {part.first * element + first, std::min(chunk.bytes, bytes - first)};
}

std::byte* CopyEngines::scratch_at(std::size_t place, std::uint32_t holder, std::uint32_t other) const {
  return scratch_ + place + (other < holder ? other : other - 1) * chunk_bytes_;
}

void CopyEngines::send(const EngineCall& call, const Chunk& chunk, std::uint32_t distance) {
  const std::uint32_t peer = peer_ahead(context_, distance);
  const Piece theirs = piece(call, chunk, peer);
  copy_after_meeting(world_, context_, *copying_, context_.at(scratch_at(chunk.place, peer, context_.rank), peer),
                     call.source + theirs.offset, theirs.bytes);
}

void CopyEngines::scatter(const EngineCall& call, const Chunk& chunk) {
  for (std::uint32_t distance = 1; distance < context_.size; ++distance) send(call, chunk, distance);
}

void CopyEngines::combine(const EngineCall& call, const Chunk& chunk) {
  const Piece mine = piece(call, chunk, context_.rank);
  const CollectedVectors others{.first = scratch_ + chunk.place, .stride = chunk_bytes_, .count = context_.size - 1};
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

void CopyEngines::return_to(const EngineCall& call, const Chunk& chunk, std::uint32_t distance) {
  const std::uint32_t peer = peer_ahead(context_, distance);
  const Piece mine = piece(call, chunk, context_.rank);
  std::byte* const result = call.destination + mine.offset;
  copy_after_meeting(world_, context_, *copying_,
                     context_.at(call.alike ? result : scratch_at(chunk.result_place, peer, context_.rank), peer),
                     result, mine.bytes);
}

void CopyEngines::take_results(const EngineCall& call, const Chunk& chunk, Stream& stream) {
  for (std::uint32_t distance = 1; distance < context_.size; ++distance) {
    const std::uint32_t owner = peer_ahead(context_, distance);
    const Piece theirs = piece(call, chunk, owner);
    copy_after_meeting(world_, context_, stream, call.destination + theirs.offset,
                       scratch_at(chunk.result_place, context_.rank, owner), theirs.bytes);
  }
}

LaunchOptions CopyEngines::meeting_on(Stream& stream, CollectiveOperation operation) const {
  return {.threads = 64,
          .waits = true,
          .stream = &stream,
          .context = &context_,
          .turns = channel_.states,
          .name = name(operation)};
}

void CopyEngines::begin(Stream& caller) {
  caller.record(*called_);
  combining_->wait_event(*called_);
  copying_->wait_event(*called_);
}

void CopyEngines::end(Stream& caller) {
  copying_->record(*copied_);
  combining_->record(*combined_);
  for (Event* over : {copied_.get(), combined_.get()}) caller.wait_event(*over);
}

void CopyEngines::meet(Event& copied) {
  combining_->wait_event(copied);
  launch_round(world_, meeting_on(*combining_, CollectiveOperation::allreduce), channel_);
  combining_->record(*met_);
}

void CopyEngines::meet_after_copies() {
  copying_->record(*copied_);
  meet(*copied_);
}

std::vector<CopyEngines::Chunk> CopyEngines::chunks(std::size_t part, bool equal) const {
  const std::size_t lasts = equal ? 0 : last_lengths[0] + last_lengths[1];
  // Chunks of the common length: two at least that get shorter, so that one's copies hide the other's combination.
  const std::size_t wanted = quotient_up(common_length * part, chunk_bytes_);
  const std::size_t most = wanted > lasts ? quotient_up(wanted - lasts, common_length) : 0;
  const std::size_t count = std::max<std::size_t>(most, equal ? 1 : 2);
  const std::size_t each = quotient_up(common_length * part, common_length * count + lasts);
  const std::size_t slot_bytes = (context_.size - 1) * chunk_bytes_;
  std::vector<Chunk> all;
  for (std::size_t first = 0; first < part; first += all.back().bytes) {
    const std::size_t i = all.size(), length = equal || i < count ? common_length : last_lengths[i == count ? 0 : 1];
    const std::size_t bytes = std::min({part - first, chunk_bytes_, whole_lines(each * length / common_length)});
    all.push_back({first, bytes, i % slots * slot_bytes, (slots + i % slots) * slot_bytes});
  }
  return all;
}

void CopyEngines::run_halves(const EngineCall& call, std::size_t part) {
  const std::size_t middle = std::min(part, whole_lines(part / 2));
  const Chunk whole{0, part, 0, 0}, early{0, middle, 0, 0}, late{middle, part - middle, middle, 0};
  const std::uint32_t others = context_.size - 1;
  for (std::uint32_t distance = 1; distance < others; ++distance) send(call, whole, distance);
  send(call, early, others);
  meet_after_copies();
  combine(call, early);
  send(call, late, others);
  meet_after_copies();
  copying_->wait_event(*combined_);
  combine(call, late);
  return_to(call, early, 1);
  copying_->wait_event(*combined_);
  return_to(call, late, 1);
  for (std::uint32_t distance = 2; distance <= others; ++distance) return_to(call, whole, distance);
}

void CopyEngines::run_chunks(const EngineCall& call, const std::vector<Chunk>& all) {
  // Two ranks cannot contend.
  const bool in_step = context_.size > 2;
  scatter(call, all[0]);
  meet_after_copies();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool has_next = i + 1 < all.size();
    combine(call, all[i]);
    if (has_next) {
      // Its place was read by the combination before this one, after which all have met.
      if (!in_step && i + 1 >= slots) copying_->wait_event(*met_);
      scatter(call, all[i + 1]);
    }
    if (!call.alike && i > 0) {
      meet(*returned_);
      take_results(call, all[i - 1], *combining_);
    }
    if (has_next) {
      meet_after_copies();
      if (in_step) copying_->wait_event(*met_);
    }
    // Where results go to was copied from before the round that this combination came after.
    copying_->wait_event(*combined_);
    for (std::uint32_t distance = 1; distance < context_.size; ++distance) return_to(call, all[i], distance);
    copying_->record(*returned_);
  }
}

void CopyEngines::exchange(const EngineCall& call, std::size_t part) {
  begin(*call.stream);
  if (context_.size == 1)
    combine(call, {0, part, 0, 0});
  else if (const std::vector<Chunk> all = chunks(part, call.alike); call.alike && all.size() == 1)
    run_halves(call, part);
  else
    run_chunks(call, all);
  end(*call.stream);
}

void CopyEngines::allreduce(const EngineCall& call) {
  // The caller's stream has the first kernel and the last: who waits for it hears of what failed between them.
  launch_meeting(world_, meeting_on(*call.stream, CollectiveOperation::allreduce), channel_, call.call,
                 call.alike ? call.destination : nullptr, call.alike ? call.source : nullptr);
  // The first part is the longest.
  const std::size_t element = bytes_of(call.call.type);
  const std::size_t part = part_of(call.call.count, context_.size, 0, alignment / element).count * element;
  if (part != 0) exchange(call, part);
  launch_round(world_, meeting_on(*call.stream, CollectiveOperation::allreduce), channel_);
  if (part != 0 && context_.size > 1 && !call.alike) take_results(call, chunks(part, false).back(), *call.stream);
}

void CopyEngines::send_pieces(const ExchangePlan& plan, const Chunk& chunk) {
  for (std::uint32_t distance = 1; distance < context_.size; ++distance) {
    const std::uint32_t peer = peer_ahead(context_, distance);
    const auto theirs = plan.outgoing(context_, peer).part(chunk.first, chunk.bytes);
    if (theirs.bytes != 0)
      copy_after_meeting(world_, context_, *copying_, context_.at(scratch_at(chunk.place, peer, context_.rank), peer),
                         theirs.at, theirs.bytes);
  }
}

void CopyEngines::take_pieces(const ExchangePlan& plan, const Chunk& chunk) {
  for (std::uint32_t distance = 1; distance < context_.size; ++distance) {
    const std::uint32_t sender = peer_ahead(context_, distance);
    const auto mine = plan.incoming(context_, sender).part(chunk.first, chunk.bytes);
    if (mine.bytes != 0)
      copy_after_meeting(world_, context_, *combining_, mine.at, scratch_at(chunk.place, context_.rank, sender),
                         mine.bytes);
  }
}

void CopyEngines::copy_own_piece(const ExchangePlan& plan) {
  const auto from = plan.outgoing(context_, context_.rank);
  std::byte* const to = plan.incoming(context_, context_.rank).at;
  if (from.bytes != 0 && to != nullptr && to != from.at)
    copy_after_meeting(world_, context_, *combining_, to, from.at, from.bytes);
}

void CopyEngines::move(const ExchangePlan& plan, const CallSignature& call, Stream& stream) {
  launch_meeting(world_, meeting_on(stream, call.operation), channel_, call, nullptr, nullptr);
  if (plan.bytes == 0) return;  // the members have compared the call
  begin(stream);
  copy_own_piece(plan);
  std::vector<Chunk> all = chunks(plan.bytes, false);
  // A chunk's place was read by all before they met with the next one. More than two keep in step.
  const std::size_t lag = context_.size > 2 ? 1 : all_slots - 1;
  for (std::size_t i = 0; context_.size > 1 && i < all.size(); ++i) {
    all[i].place = i % all_slots * (context_.size - 1) * chunk_bytes_;
    if (i >= lag) copying_->wait_event(*arrived_[(i - lag) % all_slots]);
    send_pieces(plan, all[i]);
    copying_->record(*copied_);
    combining_->wait_event(*copied_);
    launch_round(world_, meeting_on(*combining_, call.operation), channel_);
    combining_->record(*arrived_[i % all_slots]);
    take_pieces(plan, all[i]);
  }
  end(stream);
}

}  // namespace beeline::detail
