// SPDX-License-Identifier: Apache-2.0
#include "host/carried_work.hpp"

#include <algorithm>
#include <span>

#include "beeline/core/error.hpp"
#include "beeline/host/launch.hpp"
#include "beeline/host/world.hpp"
#include "host/carried_wait.hpp"
#include "host/grid_room.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"
#include "host/world/streams.hpp"
#include "transport/checks.hpp"

namespace beeline {

namespace {

constexpr unsigned copy_threads = 32;

/// Bytes to get from a rank, to put to a rank, or both, one piece after the other. Each piece has a deadline of its
/// own.
struct CarriedBytes {
  std::byte* to;
  const std::byte* from;  ///< nullptr: a fill with `value`
  std::byte* through;     ///< [piece] buffer for a get with a put, or for a fill
  std::size_t bytes, piece;
  std::uint32_t to_rank, from_rank;  ///< no_peer: this rank's device reaches it
  unsigned char value;
};

/// After a failure a host rank's stream skips later work. A GPU's stream continues; its later work by the engine ends
/// because of the abort.
BEELINE_HOST_DEVICE inline void end_with([[maybe_unused]] Status status) {
#if !BEELINE_ON_GPU
  if (status != Status::ok) throw Error(status, "what a stream does on another node");
#endif
}

struct CarryBytes {
  template <class BlockGroup>
  BEELINE_HOST_DEVICE Status carry(const BlockGroup& block, const Context& ctx, const CarriedBytes& what,
                                   std::size_t done, std::size_t count) const {
    constexpr bool puts = true;
    std::byte* const to = what.to + done;
    const std::byte* from = what.from == nullptr ? what.through : what.from + done;
    Status status = Status::ok;
    if (what.from_rank != no_peer) {
      std::byte* const local = what.to_rank == no_peer ? to : what.through;
      const detail::Request get = detail::move_request(!puts, what.from_rank);
      status = detail::move_by_engine(block, ctx, get, QueueId{}, from, {local, 1, count, 0, 0});
      from = local;
    }
    if (status != Status::ok || what.to_rank == no_peer) return status;
    const detail::Request put = detail::move_request(puts, what.to_rank);
    status = detail::move_by_engine(block, ctx, put, QueueId{}, to, {from, 1, count, 0, 0});
    if (status != Status::ok) return status;
    return detail::await_carried(block, ctx, Operation::quiet, what.to_rank);
  }

  /// The failing operation records the failure.
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CarriedBytes what) const {
    const auto& block = grid.block();
    if (block.any(detail::read_abort_word(ctx) != 0)) return end_with(Status::aborted);  // the source may be invalid
    if (what.from == nullptr)
      for (std::size_t i = block.thread_rank(); i < what.piece && i < what.bytes; i += block.size())
        what.through[i] = std::byte{what.value};
    for (std::size_t done = 0; done < what.bytes; done += what.piece) {
      const std::size_t left = what.bytes - done;
      const Status status = carry(block, ctx, what, done, left < what.piece ? left : what.piece);
      if (status != Status::ok) return end_with(status);
    }
  }
};

struct CarrySignal {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* signal, std::uint64_t value,
                                      std::uint32_t peer) const {
    const auto& block = grid.block();
    if (block.any(detail::read_abort_word(ctx) != 0)) return end_with(Status::aborted);  // data may be missing
    const detail::Request request{Operation::signal, Verb::store, sizeof value, 0, 0, peer};
    Status status = detail::change_by_engine(block, ctx, request, QueueId{}, signal, value);
    // The stream's next work may notify other ranks that the signal is set.
    if (status == Status::ok) status = detail::await_carried(block, ctx, Operation::quiet, peer);
    end_with(status);
  }
};

struct CarryChunk {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CarriedChunk chunk) const {
    const auto& block = grid.block();
    if (block.any(detail::read_abort_word(ctx) != 0)) return end_with(Status::aborted);
    const detail::Request put = detail::move_request(true, chunk.peer);
    Status status = detail::move_by_engine(block, ctx, put, QueueId{}, chunk.to, {chunk.buffer, 1, chunk.bytes, 0, 0});
    if (status != Status::ok) return end_with(status);
    if (block.thread_rank() == 0) {
      const CommandQueue queue = ctx.routes->queue(QueueId{}.index);
      *chunk.posted = detail::TicketWord(queue.tickets->next).load(std::memory_order_acquire);
      status = detail::await_posted(ctx, Operation::flush, *chunk.awaited, chunk.peer);
    }
    end_with(detail::agree_on_engine(block, status));
  }
};

struct CarryQuiet {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint32_t peer) const {
    end_with(detail::await_carried(grid.block(), ctx, Operation::quiet, peer));
  }
};

/// Whether the waits of a stream are booked; not so for the library's own streams, which have no grid state.
bool is_booked(const Stream& stream) { return stream.grid_state() != nullptr; }

/// Why copies between ranks of other nodes, and fills, cannot be captured.
constexpr std::string_view buffered = "it goes through a buffer";

}  // namespace

void carry_copy(World& world, Stream& stream, void* destination, const void* source, std::size_t bytes) {
  const auto rank_of = [&](const void* address) {
    return world_part<Routes>(world).needs_engine(address) ? world.host_context().owner_of(address) : no_peer;
  };
  CarriedBytes what{static_cast<std::byte*>(destination),
                    static_cast<const std::byte*>(source),
                    nullptr,
                    bytes,
                    std::min(bytes, world.config().chunk_bytes),
                    rank_of(destination),
                    rank_of(source),
                    0};
  if (what.to_rank != no_peer && what.from_rank != no_peer) {
    refuse_captured(stream, "a copy from one rank of another node to another", buffered);
    const std::span<std::byte> buffer = world_part<Streams>(world).carry_buffer(stream);
    what.through = buffer.data();
    what.piece = std::min(what.piece, buffer.size());
  }
  launch(world, {.threads = copy_threads, .waits = is_booked(stream), .stream = &stream, .name = "stream copy"},
         CarryBytes{}, what);
}

void carry_fill(World& world, Stream& stream, void* destination, unsigned char value, std::size_t bytes) {
  refuse_captured(stream, "a fill of memory on another node", buffered);
  const std::span<std::byte> buffer = world_part<Streams>(world).carry_buffer(stream);
  const CarriedBytes what{static_cast<std::byte*>(destination),
                          nullptr,
                          buffer.data(),
                          bytes,
                          std::min({bytes, world.config().chunk_bytes, buffer.size()}),
                          world.host_context().owner_of(destination),
                          no_peer,
                          value};
  launch(world, {.waits = is_booked(stream), .stream = &stream, .name = "stream fill"}, CarryBytes{}, what);
}

void carry_signal(World& world, Stream& stream, std::uint64_t* signal, std::uint64_t value) {
  refuse_captured(stream, "a signal with a fixed value", fixed_in_graphs);
  launch(world, {.threads = 32, .stream = &stream, .name = "stream signal"}, CarrySignal{}, signal, value,
         world.host_context().owner_of(signal));
}

void carry_chunk(World& world, Stream& stream, const CarriedChunk& chunk) {
  launch(world, {.threads = 32, .waits = is_booked(stream), .stream = &stream, .name = "hybrid chunk"}, CarryChunk{},
         chunk);
}

ReservedRoom room_of_carried_work(World& world, unsigned streams) {
  return room_of_grid<CarryBytes, CarriedBytes>(world, copy_threads, streams);
}

void carry_quiet(World& world, Stream& stream, std::uint32_t peer) {
  launch(world, {.threads = 32, .waits = is_booked(stream), .stream = &stream, .name = "hybrid transfer"}, CarryQuiet{},
         peer);
}

}  // namespace beeline
