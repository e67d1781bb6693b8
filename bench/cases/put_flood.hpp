// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Every block of a grid puts its share directly at the destination, then sets a signal, message after message. `Path`
/// opens the sender.

#include <memory>

#include "beeline/device/put_get.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_grid.hpp"
#include "peers/bare_store.hpp"

namespace beeline::bench {

/// The messages of one launch. Words that blocks poll are in separate cache lines.
struct Flood {
  BlockTimes* times;
  PaddedWord* arrived;       ///< [senders] at the receiver; the senders are blocks unless stated otherwise
  PaddedWord* acknowledged;  ///< [blocks] at the sender
  std::byte* destination;
  const std::byte* source;
  std::uint64_t bytes;
  std::uint64_t first;  ///< sequence number of the last message of the previous launch
  std::uint32_t messages, warm_up, peer;
  bool sends;
};

/// `Path::open(block, ctx)` returns an object that sends by `put_signal(destination, source, bytes, signal, value,
/// peer)`.
template <class Path>
struct PutFlood {
  static constexpr std::size_t shared_bytes = Path::shared_bytes;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Flood flood) const {
    const Share share = share_of(flood.bytes, grid.block_rank(), grid.blocks());
    auto sender = Path::open(grid.block(), ctx);
    if (!pass(grid, ctx, flood, sender, share, flood.first, flood.warm_up)) return;
    // Blocks start together; otherwise the measured time of the first would include waiting for the last.
    if (grid.sync(ctx) != Status::ok) return;
    const std::uint64_t start = machine::clock_ns();
    if (!pass(grid, ctx, flood, sender, share, flood.first + flood.warm_up, flood.messages)) return;
    if (grid.block().thread_rank() == 0) flood.times[grid.block_rank()] = {start, machine::clock_ns()};
  }

 private:
  /// Moves this block's part of `count` messages, and waits for the receiver's acknowledgement of the last one.
  template <class Grid, class Sender>
  static BEELINE_HOST_DEVICE bool pass(Grid& grid, const Context& ctx, const Flood& flood, Sender& sender, Share share,
                                       std::uint64_t before, std::uint32_t count) {
    // Without messages there is nothing to wait for: launches with fewer blocks have not advanced this block's words.
    if (count == 0) return true;
    const auto& block = grid.block();
    std::uint64_t* arrived = &flood.arrived[grid.block_rank()].value;
    std::uint64_t* acknowledged = &flood.acknowledged[grid.block_rank()].value;
    const std::uint64_t last = before + count;
    if (!flood.sends) {
      if (wait(block, ctx, arrived, Compare::greater_equal, last, flood.peer) != Status::ok) return false;
      signal(block, ctx, acknowledged, last, flood.peer);
      return true;
    }
    for (std::uint64_t sequence = before + 1; sequence <= last; ++sequence)
      sender.put_signal(flood.destination + share.offset, flood.source + share.offset, share.bytes, arrived, sequence,
                        flood.peer);
    return wait(block, ctx, acknowledged, Compare::greater_equal, last, flood.peer) == Status::ok;
  }
};

/// Data that the grid shapes of one message size share.
struct FloodState {
  FloodState(Bench& bench_in, std::uint64_t bytes, unsigned blocks)
      : bench(bench_in), buffers(std::make_shared<MessageBuffers>(bench, bytes)), timed(bench, blocks),
        arrived(bench.world(), blocks), acknowledged(bench.world(), blocks) {}

  template <class Path>
  std::vector<double> time_library(const GridShape& shape, Rounds rounds) {
    return time_batches(rounds, [&] {
      const Flood flood{
          timed.times(),    arrived.data(), acknowledged.data(), buffers->destination(), buffers->source(),
          buffers->bytes(), last,           rounds.iterations,   rounds.warm_up,         bench.peer(),
          bench.leads()};
      last += rounds.warm_up + rounds.iterations;
      return timed.run(shape, bench.paired(), PutFlood<Path>{}, flood);
    });
  }

  std::vector<double> time_bare(const GridShape& shape, Rounds rounds) {
    std::byte* there = bench.leads() ? bench.world().at(buffers->destination(), 1) : nullptr;
    return time_batches(rounds, [&] {
      return timed.run(shape, bench.leads(), BareStore{}, timed.times(), there, buffers->source(), buffers->bytes(),
                       rounds.iterations);
    });
  }

  Bench& bench;
  std::shared_ptr<MessageBuffers> buffers;
  TimedGrid timed;
  SymmetricArray<PaddedWord> arrived, acknowledged;
  std::uint64_t last = 0;
};

inline Measurement flood_measurement(const std::shared_ptr<FloodState>& state, const GridShape& shape,
                                     std::string method, std::function<std::vector<double>(Rounds)> time) {
  Measurement measurement =
      message_measurement(state->bench, state->buffers, Receivers::second, std::move(method), std::move(time));
  measurement.settings = shape.settings(state->bench.world().device().is_gpu());
  return measurement;
}

}  // namespace beeline::bench
