// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/copy_engine.hpp"

#include <algorithm>

#include "beeline/device/wait.hpp"
#include "beeline/selection/preferences.hpp"
#include "host/collectives/launchers.hpp"
#include "host/collectives/round_kernels.hpp"
#include "host/world/part.hpp"
#include "host/world/teams.hpp"

namespace beeline::detail {

namespace {

constexpr auto sizes = selection::engine_sizes;

constexpr std::size_t quotient_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

std::size_t whole_engine_lines(std::size_t bytes) { return quotient_up(bytes, engine_alignment) * engine_alignment; }

std::size_t others(std::size_t members) { return std::max<std::size_t>(1, members - 1); }

}  // namespace

void copy_after_handshake(Team& team, Stream& stream, std::byte* to, const std::byte* from, std::size_t bytes) {
  World& world = team.world();
  if (world.device().is_gpu()) return world.copy(to, from, bytes, stream);
  stream.enqueue([&world, context = team.context(), to, from, bytes] {
    if (read_abort_word(context) == 0) world.copy(to, from, bytes);
  });
}

std::size_t CopyEngines::most_bytes(std::size_t members) {
  return others(members) * direct.arrivals * sizes.most_chunk;
}

std::size_t CopyEngines::useful_bytes(std::size_t members) { return most_bytes(members) / 8; }

std::size_t CopyEngines::least_bytes(std::size_t members) {
  return others(members) * (staged.arrivals + staged.results) * engine_alignment;
}

CopyEngines::CopyEngines(Team& team, const CollectiveChannel& channel, std::span<std::byte> scratch)
    : team_(team), context_(team.context()), channel_(channel), scratch_(scratch), copying_(team.world().make_stream()),
      returning_(team.world().make_stream()), combining_(team.world().make_stream(StreamPriority::high)),
      recording_(team.world().make_stream()), called_(copying_->make_event()), copied_(copying_->make_event()),
      returned_(copying_->make_event()), met_(combining_->make_event()), combined_(combining_->make_event()) {
  for (auto& event : arrived_) event = combining_->make_event();
}

EnginePiece CopyEngines::piece(const EngineCall& call, const Chunk& chunk, std::uint32_t owner) const {
  return piece_of(chunk, call.call.count, bytes_of(call.call.element.type), context_.size, owner);
}

std::byte* CopyEngines::arrival(const Chunk& chunk, std::uint32_t holder, std::uint32_t other) const {
  return scratch_.data() + chunk.place + number_beside(holder, other) * chunk.stride;
}

void CopyEngines::send(const EngineCall& call, const Chunk& chunk, std::uint32_t distance) {
  const std::uint32_t peer = peer_ahead(context_, distance);
  const EnginePiece theirs = piece(call, chunk, peer);
  copy_after_handshake(team_, *copying_, context_.at(arrival(chunk, peer, context_.rank), peer),
                       call.source + theirs.offset, theirs.bytes);
}

void CopyEngines::scatter(const EngineCall& call, const Chunk& chunk) {
  for (std::uint32_t distance = 1; distance < context_.size; ++distance) send(call, chunk, distance);
}

void CopyEngines::combine(const EngineCall& call, const Chunk& chunk) {
  combine_piece(call, chunk, piece(call, chunk, context_.rank));
  combining_->record(*combined_);
}

void CopyEngines::combine_piece(const EngineCall& call, const Chunk& chunk, const EnginePiece& mine) {
  const CollectedVectors arrived{scratch_.data() + chunk.place, chunk.stride, context_.size - 1};
  const LocalReduction work{.destination = call.destination + mine.offset,
                            .vectors = {.own = call.source + mine.offset, .others = arrived, .rank = context_.rank},
                            .count = mine.bytes / bytes_of(call.call.element.type),
                            .reduction = call.call.reduction};
  const unsigned blocks = team_.world().device().is_gpu() ? sizes.kernel_blocks : 1;
  reduction_launchers(call.call.element.type, call.call.reduction)
      .reduce_locally(team_, {.blocks = blocks, .threads = collective_threads, .stream = combining_.get()}, work);
}

void CopyEngines::return_to(const EngineCall& call, const Chunk& chunk, std::uint32_t distance, Stream& stream) {
  const std::uint32_t peer = peer_ahead(context_, distance);
  const EnginePiece mine = piece(call, chunk, context_.rank);
  std::byte* const result = call.destination + mine.offset;
  std::byte* const place = scratch_.data() + chunk.result_place + number_beside(peer, context_.rank) * chunk.stride;
  copy_after_handshake(team_, stream, context_.at(call.symmetric ? result : place, peer), result, mine.bytes);
}

void CopyEngines::take(const EngineCall& call, const Chunk& chunk, Stream& stream) {
  const unsigned blocks = team_.world().device().is_gpu() ? sizes.kernel_blocks : 1;
  launch_take(team_, {.blocks = blocks, .threads = collective_threads, .stream = &stream},
              {.destination = call.destination,
               .scratch = scratch_.data(),
               .count = call.call.count,
               .element_bytes = bytes_of(call.call.element.type),
               .chunk = chunk});
}

LaunchOptions CopyEngines::handshake_on(Stream& stream, Operation operation) const {
  return {
      .threads = 64, .waits = true, .stream = &stream, .serialization_key = channel_.states, .name = name(operation)};
}

void CopyEngines::begin(Stream& caller) {
  caller.record(*called_);
  for (Stream* stream : {combining_.get(), copying_.get(), returning_.get()}) stream->wait_event(*called_);
}

void CopyEngines::end(Stream& caller) {
  copying_->record(*copied_);
  combining_->record(*combined_);
  returning_->record(*returned_);
  for (Event* over : {copied_.get(), combined_.get(), returned_.get()}) caller.wait_event(*over);
}

void CopyEngines::meet(Event& copied) {
  combining_->wait_event(copied);
  launch_round({team_, handshake_on(*combining_, Operation::allreduce), channel_});
  combining_->record(*met_);
}

void CopyEngines::meet_after_copies() {
  copying_->record(*copied_);
  meet(*copied_);
}

std::vector<EngineChunk> CopyEngines::chunks(std::size_t part, Slots slots, bool equal) const {
  const std::size_t peers = others(context_.size);
  const std::size_t place = scratch_.size() / (peers * (slots.arrivals + slots.results));
  const std::size_t stride = std::min(sizes.most_chunk, place / engine_alignment * engine_alignment);
  const std::size_t lasts = equal ? 0 : sizes.last_lengths[0] + sizes.last_lengths[1];
  // Number of chunks of the common length. At least two chunks of decreasing length, so that the copies of one overlap
  // with the combination of the other.
  const std::size_t wanted = quotient_up(sizes.common_length * part, stride);
  const std::size_t most = wanted > lasts ? quotient_up(wanted - lasts, sizes.common_length) : 0;
  const std::size_t count = std::max<std::size_t>(most, equal ? 1 : 2);
  const std::size_t each = quotient_up(sizes.common_length * part, sizes.common_length * count + lasts);
  std::vector<Chunk> all;
  for (std::size_t first = 0; first < part; first += all.back().bytes) {
    const std::size_t i = all.size(),
                      length = equal || i < count ? sizes.common_length : sizes.last_lengths[i == count ? 0 : 1];
    const std::size_t bytes = std::min({part - first, stride, whole_engine_lines(each * length / sizes.common_length)});
    const std::size_t result = slots.results == 0 ? 0 : slots.arrivals + i % slots.results;
    all.push_back({first, bytes, i % slots.arrivals * peers * stride, result * peers * stride, stride});
  }
  return all;
}

void CopyEngines::run_halves(const EngineCall& call, const Chunk& whole) {
  Chunk early = whole, late = whole;
  early.bytes = std::min(whole.bytes, whole_engine_lines(whole.bytes / 2));
  late.first = late.place = early.bytes;
  late.bytes = whole.bytes - early.bytes;
  const std::uint32_t last = context_.size - 1;
  for (std::uint32_t distance = 1; distance < last; ++distance) send(call, whole, distance);
  send(call, early, last);
  meet_after_copies();
  combine(call, early);
  send(call, late, last);
  meet_after_copies();
  copying_->wait_event(*combined_);
  combine(call, late);
  return_to(call, early, 1, *copying_);
  copying_->wait_event(*combined_);
  return_to(call, late, 1, *copying_);
  for (std::uint32_t distance = 2; distance <= last; ++distance) return_to(call, whole, distance, *copying_);
}

void CopyEngines::scatter_next(const EngineCall& call, const std::vector<Chunk>& all, std::size_t next) {
  const bool in_step = context_.size > 2;  // two ranks cannot contend
  // The slot of the next chunk was last read by the combination before the current one, and a handshake has followed
  // it.
  static_assert(staged.arrivals == direct.arrivals);
  if (!in_step && next >= direct.arrivals) copying_->wait_event(*met_);
  scatter(call, all[next]);
  meet_after_copies();
  if (in_step) copying_->wait_event(*met_);
}

void CopyEngines::return_result(const EngineCall& call, const Chunk& chunk, Stream& stream) {
  // The target of the result was last read before the handshake that preceded this combination.
  stream.wait_event(*combined_);
  for (std::uint32_t distance = 1; distance < context_.size; ++distance) return_to(call, chunk, distance, stream);
}

void CopyEngines::run_direct(const EngineCall& call, const std::vector<Chunk>& all) {
  // More than two members wait between their copies; results, on a stream of their own, use the link during these
  // waits.
  Stream& stream = context_.size > 2 ? *returning_ : *copying_;
  scatter(call, all[0]);
  meet_after_copies();
  for (std::size_t i = 0; i < all.size(); ++i) {
    combine(call, all[i]);
    if (i + 1 < all.size()) scatter_next(call, all, i + 1);
    return_result(call, all[i], stream);
  }
}

void CopyEngines::run_staged(const EngineCall& call, const std::vector<Chunk>& all) {
  const std::size_t last = all.size() - 1;
  scatter(call, all[0]);
  meet_after_copies();
  for (std::size_t i = 0; i <= last; ++i) {
    combine(call, all[i]);
    // The handshake of this chunk is complete; before this chunk's parts, each member sent its results of chunk i - 2.
    if (i >= 2) take(call, all[i - 2], *combining_);
    if (i < last) {
      scatter_next(call, all, i + 1);
    } else if (i >= 1) {  // no later chunk brings a handshake
      meet(*returned_);
      take(call, all[i - 1], *combining_);
    }
    return_result(call, all[i], *copying_);
    copying_->record(*returned_);
  }
}

template <class Send, class Take>
void CopyEngines::in_turns(Operation operation, const std::vector<Chunk>& all, const Send& send, const Take& take) {
  // All members have read a chunk's slot before the handshake of the next chunk. More than two members keep in step.
  const std::size_t lag = context_.size > 2 ? 1 : moved.arrivals - 1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i >= lag) copying_->wait_event(*arrived_[(i - lag) % most_arrivals]);
    send(all[i]);
    copying_->record(*copied_);
    combining_->wait_event(*copied_);
    launch_round({team_, handshake_on(*combining_, operation), channel_});
    combining_->record(*arrived_[i % most_arrivals]);
    take(all[i]);
  }
}

void CopyEngines::exchange_whole(const EngineCall& call) {
  const std::uint32_t peer = peer_ahead(context_, 1);
  begin(*call.stream);
  const std::vector<Chunk> all = chunks(call.call.count * bytes_of(call.call.element.type), moved, false);
  in_turns(
      Operation::allreduce, all,
      [&](const Chunk& chunk) {
        copy_after_handshake(team_, *copying_, context_.at(arrival(chunk, peer, context_.rank), peer),
                             call.source + chunk.first, chunk.bytes);
      },
      [&](const Chunk& chunk) {
        combine_piece(call, chunk, {chunk.first, chunk.bytes});
      });
  end(*call.stream);
}

void CopyEngines::exchange(const EngineCall& call, std::size_t part) {
  const std::vector<Chunk> all = chunks(part, call.symmetric ? direct : staged, call.symmetric);
  begin(*call.stream);
  if (context_.size == 1)
    combine(call, {.bytes = part});
  else if (call.symmetric && all.size() == 1)
    run_halves(call, all[0]);
  else if (call.symmetric)
    run_direct(call, all);
  else
    run_staged(call, all);
  end(*call.stream);
  launch_round({team_, handshake_on(*call.stream, Operation::allreduce), channel_});
  if (context_.size > 1 && !call.symmetric) take(call, all.back(), *call.stream);
}

CopyEngines::Repeated* CopyEngines::known(const EngineCall& call) {
  constexpr std::size_t most = 4;  // programs have few such calls, and each graph keeps memory
  const auto is_same = [&](const Repeated& other) {
    const EngineCall& before = other.call;
    return before.destination == call.destination && before.source == call.source &&
           before.call.packed() == call.call.packed() && before.call.count == call.call.count &&
           before.symmetric == call.symmetric;
  };
  const auto found = std::find_if(repeated_.begin(), repeated_.end(), is_same);
  if (found != repeated_.end()) {
    std::rotate(found, found + 1, repeated_.end());
    return &repeated_.back();
  }
  if (repeated_.size() == most) repeated_.erase(repeated_.begin());
  repeated_.push_back({call, nullptr});
  return nullptr;
}

void CopyEngines::allreduce(const EngineCall& call) {
  const bool may_record = team_.world().device().is_gpu() && call.stream->capture() == 0;
  Repeated* const before = may_record ? known(call) : nullptr;
  if (before == nullptr) return issue(call);
  if (before->work == nullptr) {
    EngineCall again = call;
    again.stream = recording_.get();
    before->work = record_work(*recording_, [&] { issue(again); });
  }
  world_part<Teams>(team_.world()).note_launch(*call.stream, context_, false);
  before->work->run(*call.stream);
}

void CopyEngines::issue(const EngineCall& call) {
  // The first and the last kernel are on the caller's stream, so a failure between them is reported when the caller
  // waits for that stream.
  launch_handshake({team_, handshake_on(*call.stream, Operation::allreduce), channel_}, call.call,
                   call.symmetric ? call.destination : nullptr, call.symmetric ? call.source : nullptr);
  if (context_.size == 2 && !call.symmetric) return exchange_whole(call);
  // The first part is the longest.
  const std::size_t element = bytes_of(call.call.element.type);
  exchange(call, part_of(call.call.count, context_.size, 0, engine_alignment / element).count * element);
}

void CopyEngines::send_pieces(const MovementPlan& plan, const Chunk& chunk) {
  for (std::uint32_t distance = 1; distance < context_.size; ++distance) {
    const std::uint32_t peer = peer_ahead(context_, distance);
    const auto theirs = plan.outgoing(context_, peer).part(chunk.first, chunk.bytes);
    if (theirs.bytes != 0)
      copy_after_handshake(team_, *copying_, context_.at(arrival(chunk, peer, context_.rank), peer), theirs.at,
                           theirs.bytes);
  }
}

void CopyEngines::take_pieces(const MovementPlan& plan, const Chunk& chunk) {
  for (std::uint32_t distance = 1; distance < context_.size; ++distance) {
    const std::uint32_t sender = peer_ahead(context_, distance);
    const auto mine = plan.incoming(context_, sender).part(chunk.first, chunk.bytes);
    if (mine.bytes != 0)
      copy_after_handshake(team_, *combining_, mine.at, arrival(chunk, context_.rank, sender), mine.bytes);
  }
}

void CopyEngines::copy_own_piece(const MovementPlan& plan) {
  const auto from = plan.outgoing(context_, context_.rank);
  std::byte* const to = plan.incoming(context_, context_.rank).at;
  if (from.bytes != 0 && to != nullptr && to != from.at)
    copy_after_handshake(team_, *combining_, to, from.at, from.bytes);
}

void CopyEngines::move(const MovementPlan& plan, Stream& stream) {
  const Operation operation = plan.call.operation;
  launch_handshake({team_, handshake_on(stream, operation), channel_}, plan.call, nullptr, nullptr);
  begin(stream);
  copy_own_piece(plan);
  if (context_.size > 1)
    in_turns(
        operation, chunks(plan.bytes, moved, false), [&](const Chunk& chunk) { send_pieces(plan, chunk); },
        [&](const Chunk& chunk) { take_pieces(plan, chunk); });
  end(stream);
}

}  // namespace beeline::detail
