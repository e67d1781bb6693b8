// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/hybrid_transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/host/world.hpp"
#include "host/carried_work.hpp"
#include "host/channel_agreement.hpp"
#include "host/ranges.hpp"
#include "host/world/memory_map.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"
#include "transport/checks.hpp"
#include "transport/chunk_ring.hpp"

namespace beeline {

namespace {

constexpr std::uint32_t most_chunks = 64;
/// Shortest chunk where the path decides.
constexpr std::size_t least_chunk = std::size_t{128} << 10;

/// The options with `others` in place of zeros.
HybridOptions completed(HybridOptions options, const HybridOptions& others) {
  if (options.threshold_bytes == 0) options.threshold_bytes = others.threshold_bytes;
  if (options.chunk_bytes == 0) options.chunk_bytes = others.chunk_bytes;
  if (options.chunks == 0) options.chunks = others.chunks;
  return options;
}

HybridOptions configured(const Config& config) {
  return {config.hybrid_threshold_bytes, config.hybrid_chunk_bytes, static_cast<std::uint32_t>(config.hybrid_chunks)};
}

/// Bytes of a transfer's chunks. Where the path decides, short transfers have shorter chunks, and so use all buffers
/// twice.
std::size_t chunk_of(const HybridOptions& options, std::size_t bytes) {
  if (options.threshold_bytes != 0) return options.chunk_bytes;
  constexpr std::size_t page = 4096;
  const std::size_t part = (bytes / (2 * options.chunks) + page - 1) / page * page;
  return std::min(options.chunk_bytes, std::max(least_chunk, part));
}

/// The sizes of the buffers, which members compare.
struct TransferShape {
  std::uint64_t chunk_bytes, chunks;

  bool operator==(const TransferShape&) const = default;
};

/// Collective.
HybridOptions agreed(Team& team, const HybridOptions& options) {
  const HybridOptions all = completed(options, configured(team.world().config()));
  detail::require_same(team, "HybridTransfers", TransferShape{all.chunk_bytes, all.chunks},
                       [](std::size_t, const TransferShape& first, std::size_t rank, const TransferShape& theirs) {
                         return fmt::format("hybrid transfers differ: {} chunks of {} bytes, and on rank {} {} of {}",
                                            first.chunks, first.chunk_bytes, rank, theirs.chunks, theirs.chunk_bytes);
                       });
  require(all.chunks <= most_chunks, Status::invalid_argument,
          fmt::format("hybrid transfers with {} chunks in flight: at most {}", all.chunks, most_chunks));
  return all;
}

struct HybridTransfer {
  void* destination;
  const void* source;
  std::size_t bytes;

  bool operator==(const HybridTransfer&) const = default;
};

}  // namespace

struct HybridTransfers::Implementation {
  /// A blocking call that timed out.
  struct Pending {
    HybridTransfer transfer;
    std::unique_ptr<Event> done;
  };

  Implementation(Team& members, const HybridOptions& options)
      : team(members), world(members.world()), routes(world_part<Routes>(world)), made(options), current(options),
        buffers(members, detail::array_bytes(options.chunks, options.chunk_bytes), Heap::pinned),
        posted(members, most_chunks, Heap::pinned), out(world.make_stream()), in(world.make_stream()),
        ring(*in, buffers.data(), buffers.bytes()) {}
  /// Other streams may still use the buffers, and a GPU's stream ends before its work does.
  ~Implementation() {
    try {
      ring.let_follow(*out);
      world.synchronize(*out);
    } catch (const std::exception& error) {
      log(LogLevel::info, fmt::format("hybrid transfers end: {}", error.what()), world.rank());
    }
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  /// Locks `mutex`, and counts the time that this takes.
  [[nodiscard]] std::unique_lock<std::mutex> lock();
  void check(const char* call, const HybridTransfer& transfer) const;
  /// Bytes that certainly go directly, whatever the path.
  [[nodiscard]] std::size_t always_direct(const HybridOptions& by) const {
    if (by.threshold_bytes != 0) return by.threshold_bytes;
    return routes.has_own_copies_only() ? SIZE_MAX : 0;
  }
  [[nodiscard]] bool is_staged(const HybridOptions& by, const HybridTransfer& transfer) const;
  /// A put to a rank of the team as a transfer between addresses.
  [[nodiscard]] HybridTransfer put_to(const char* call, HybridTransfer put, int peer) const;
  /// Enqueues a transfer after the work of `stream`. Returns a stream whose work up to now includes the transfer:
  /// `stream`, or `in`, where `ring.last()` follows the transfer. The caller holds the lock.
  Stream& enqueue(const HybridTransfer& transfer, Stream& stream);
  void stage(Stream& stream, std::byte* to, const ChunkRing::Transfer& from);
  /// The event behind a transfer that a blocking call makes or continues; nullptr: it needs none of this object's
  /// streams.
  [[nodiscard]] std::unique_ptr<Event> begin(const HybridTransfer& transfer, Timeout timeout);
  [[nodiscard]] Status blocking(const char* call, const HybridTransfer& transfer, Timeout timeout);
  void on_stream(const char* call, const HybridTransfer& transfer, Stream* given);

  Team& team;
  World& world;
  const Routes& routes;
  const HybridOptions made;
  mutable std::mutex mutex;
  HybridOptions current;
  std::atomic<std::size_t> direct_bytes{always_direct(current)};  ///< of `current`, for calls that take no lock
  SymmetricArray<std::byte> buffers;
  SymmetricArray<std::uint64_t> posted;  ///< see CarriedChunk
  std::unique_ptr<Stream> out, in;       ///< of blocking calls; deliveries
  ChunkRing ring;
  std::vector<Pending> pending;
  std::atomic<bool> has_pending{false};
  std::vector<std::unique_ptr<Event>> unused;  ///< events for blocking calls
  std::atomic<std::uint64_t> lock_wait_ns{0};
};

std::unique_lock<std::mutex> HybridTransfers::Implementation::lock() {
  std::unique_lock held(mutex, std::try_to_lock);
  if (held.owns_lock()) return held;
  const std::uint64_t start = machine::clock_ns();
  held.lock();
  lock_wait_ns.fetch_add(machine::clock_ns() - start, std::memory_order_relaxed);
  return held;
}

HybridTransfer HybridTransfers::Implementation::put_to(const char* call, HybridTransfer put, int peer) const {
  static_cast<void>(team.world_rank(peer));
  if (put.bytes == 0) return put;
  put.destination = detail::named_at(team, {call, "destination"}, put.destination, put.bytes, peer);
  return put;
}

void HybridTransfers::Implementation::check(const char* call, const HybridTransfer& transfer) const {
  detail::require_extent(world, {call, "destination"}, transfer.destination, transfer.bytes);
  detail::require_extent(world, {call, "source"}, transfer.source, transfer.bytes);
  static_cast<void>(routes.of_copy(transfer.destination));
  static_cast<void>(routes.of_copy(transfer.source));
}

bool HybridTransfers::Implementation::is_staged(const HybridOptions& by, const HybridTransfer& transfer) const {
  if (transfer.bytes <= always_direct(by)) return false;
  return by.threshold_bytes == 0 ? routes.is_staged_by_engine(transfer.destination, transfer.source)
                                 : !routes.needs_engine(transfer.source);
}

void HybridTransfers::Implementation::stage(Stream& stream, std::byte* to, const ChunkRing::Transfer& from) {
  if (!routes.needs_engine(to))
    return ring.stage(stream, from,
                      [&](const ChunkRing::Chunk& chunk) { in->copy(to + chunk.offset, chunk.buffer, chunk.bytes); });
  const std::uint32_t peer = world.host_context().owner_of(to);
  ChunkRing::Transfer lagging = from;
  lagging.lag = (ring.count() - 1) / 2;  // the other buffers are filled meanwhile
  ring.stage(stream, lagging, [&](const ChunkRing::Chunk& chunk) {
    carry_chunk(world, *in,
                {to + chunk.offset, chunk.buffer, chunk.bytes, posted.data() + chunk.number,
                 posted.data() + chunk.freed, peer});
  });
  carry_quiet(world, *in, peer);
  ring.free_rest();
}

Stream& HybridTransfers::Implementation::enqueue(const HybridTransfer& transfer, Stream& stream) {
  if (!is_staged(current, transfer)) {
    world.copy(transfer.destination, transfer.source, transfer.bytes, stream);
    return stream;
  }
  const std::size_t chunk = chunk_of(current, transfer.bytes);
  const bool is_one_chunk = transfer.bytes <= chunk;
  ring.divide(stream, current.chunk_bytes, current.chunks);
  world_part<MemoryMap>(world).for_pieces(
      transfer.destination, transfer.source, transfer.bytes,
      [&](std::byte* to, const std::byte* from, std::size_t piece) {
        if (!is_one_chunk) return stage(stream, to, {from, piece, chunk});
        ring.stage_whole(stream, from, piece, [&](const std::byte* buffer) { stream.copy(to, buffer, piece); });
      });
  return is_one_chunk ? stream : *in;
}

std::unique_ptr<Event> HybridTransfers::Implementation::begin(const HybridTransfer& transfer, Timeout timeout) {
  const std::unique_lock held = lock();
  const auto known =
      std::find_if(pending.begin(), pending.end(), [&](const Pending& each) { return each.transfer == transfer; });
  if (known != pending.end()) {
    std::unique_ptr<Event> over = std::move(known->done);
    pending.erase(known);
    return over;
  }
  if (timeout.ns == Timeout::none().ns && !is_staged(current, transfer)) return nullptr;
  if (unused.empty()) unused.push_back(in->make_event());
  Stream& end = enqueue(transfer, *out);
  std::unique_ptr<Event> over = std::move(unused.back());
  unused.pop_back();
  end.record(*over);
  return over;
}

Status HybridTransfers::Implementation::blocking(const char* call, const HybridTransfer& transfer, Timeout timeout) {
  std::unique_ptr<Event> over;
  const bool is_simple = timeout.ns == Timeout::none().ns && transfer.bytes <= direct_bytes && !has_pending;
  if (!is_simple && moves_anything(transfer.destination, transfer.source, transfer.bytes)) {
    check(call, transfer);
    over = begin(transfer, timeout);
  }
  if (over == nullptr) {
    world.copy(transfer.destination, transfer.source, transfer.bytes);
    return Status::ok;
  }
  const Status status = world.synchronize(*over, timeout);
  const std::unique_lock held = lock();
  if (status == Status::ok)
    unused.push_back(std::move(over));
  else
    pending.push_back({transfer, std::move(over)});
  has_pending = !pending.empty();
  return status;
}

void HybridTransfers::Implementation::on_stream(const char* call, const HybridTransfer& transfer, Stream* given) {
  Stream& stream = given == nullptr ? world.stream() : *given;
  if (transfer.bytes <= direct_bytes || !moves_anything(transfer.destination, transfer.source, transfer.bytes))
    return world.copy(transfer.destination, transfer.source, transfer.bytes, stream);
  check(call, transfer);
  const std::unique_lock held = lock();
  if (!is_staged(current, transfer)) return world.copy(transfer.destination, transfer.source, transfer.bytes, stream);
  refuse_captured(stream, "a staged transfer", "transfers that follow each other use the same buffers");
  if (&enqueue(transfer, stream) == in.get()) stream.wait_event(ring.last());
}

HybridTransfers::HybridTransfers(Team& team, const HybridOptions& options)
    : implementation_(new Implementation(team, agreed(team, options)), detail::DeleteWithTeam{team.life()}) {}

HybridTransfers::~HybridTransfers() = default;

void HybridTransfers::set(const HybridOptions& options) {
  const HybridOptions next = completed(options, implementation_->made);
  require(next.chunks <= most_chunks && implementation_->ring.fits(next.chunk_bytes, next.chunks),
          Status::invalid_argument,
          fmt::format("{} chunks of {} bytes in flight: these hybrid transfers were made with buffers of {} bytes, and "
                      "at most {} chunks are in flight",
                      next.chunks, next.chunk_bytes, implementation_->buffers.bytes(), most_chunks));
  const std::unique_lock held = implementation_->lock();
  implementation_->current = next;
  implementation_->direct_bytes = implementation_->always_direct(next);
}

HybridOptions HybridTransfers::options() const {
  const std::unique_lock held = implementation_->lock();
  return implementation_->current;
}

bool HybridTransfers::is_staged(const void* destination, const void* source, std::size_t bytes) const {
  return implementation_->is_staged(options(), {const_cast<void*>(destination), source, bytes});
}

Status HybridTransfers::copy(void* destination, const void* source, std::size_t bytes, Timeout timeout) {
  return implementation_->blocking("HybridTransfers::copy", {destination, source, bytes}, timeout);
}

Status HybridTransfers::put(void* destination, const void* source, std::size_t bytes, int peer, Timeout timeout) {
  constexpr const char* call = "HybridTransfers::put";
  return implementation_->blocking(call, implementation_->put_to(call, {destination, source, bytes}, peer), timeout);
}

void HybridTransfers::copy_on_stream(void* destination, const void* source, std::size_t bytes, Stream* stream) {
  implementation_->on_stream("HybridTransfers::copy_on_stream", {destination, source, bytes}, stream);
}

void HybridTransfers::put_on_stream(void* destination, const void* source, std::size_t bytes, int peer,
                                    Stream* stream) {
  constexpr const char* call = "HybridTransfers::put_on_stream";
  implementation_->on_stream(call, implementation_->put_to(call, {destination, source, bytes}, peer), stream);
}

std::uint64_t HybridTransfers::lock_wait_ns() const { return implementation_->lock_wait_ns; }

}  // namespace beeline
