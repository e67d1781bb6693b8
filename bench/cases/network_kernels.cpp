// SPDX-License-Identifier: Apache-2.0
/// @file
/// Transfers between GPU ranks on different nodes, by kernels of one thread.

#include "cases/network_pair.hpp"

namespace beeline::bench {

namespace {

struct Messages {
  std::byte* destination;
  const std::byte* source;
  std::uint64_t* signal;
  std::uint64_t bytes, slots;
};

struct PutsAndQuiet {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Messages messages) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t) {
      for (std::uint64_t slot = 0; slot < messages.slots; ++slot) {
        const std::uint64_t place = slot * messages.bytes;
        put(Thread{}, ctx, messages.destination + place, messages.source + place, messages.bytes, loop.peer);
      }
      return quiet(Thread{}, ctx) == Status::ok;
    });
  }
};

struct PutSignalsInTurn {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Messages messages) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads,
          [&] {
            put_signal(Thread{}, ctx, messages.destination, messages.source, messages.bytes, messages.signal, sequence,
                       loop.peer);
          },
          [&] {
            return wait(Thread{}, ctx, messages.signal, Compare::greater_equal, sequence, loop.peer) == Status::ok;
          });
    });
  }
};

struct GetsInTurn {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Messages messages) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t) {
      return get(Thread{}, ctx, messages.destination, messages.source, messages.bytes, loop.peer) == Status::ok;
    });
  }
};

Messages messages_of(const MessageBuffers& buffers, std::uint64_t* signal, std::uint64_t bytes, std::uint64_t slots) {
  return {buffers.destination(), buffers.source(), signal, bytes, slots};
}

}  // namespace

std::vector<double> NetworkPair::time_puts(Memories memories, Rounds rounds) {
  const auto buffers = buffers_in(memories);
  return timed_.run(1, bench_.leads(), rounds, PutsAndQuiet{}, messages_of(*buffers, nullptr, bytes_, slots_));
}

std::vector<double> NetworkPair::time_put_signals(Memories memories, Rounds rounds) {
  const auto buffers = buffers_in(memories);
  return timed_.run(1, bench_.paired(), rounds, PutSignalsInTurn{},
                    messages_of(*buffers, &signals_.data()->value, bytes_, slots_));
}

std::vector<double> NetworkPair::time_gets(Memories memories, Rounds rounds) {
  const auto buffers = buffers_in(memories);
  return timed_.run(1, bench_.leads(), rounds, GetsInTurn{}, messages_of(*buffers, nullptr, bytes_, slots_));
}

}  // namespace beeline::bench
