// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <memory>

#include "beeline/control/post.hpp"
#include "beeline/device/atomic.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/host/command_queues.hpp"
#include "c/call.hpp"

using namespace beeline;
using c::object_of;
using c::operate;
using c::queue_of;

struct beeline_queues : c::Handle<0xbee10007> {
  beeline_queues(beeline_team& in, std::uint32_t count, const CommandQueueOptions& options)
      : team(&in), queues(*in.team, count, options) {}
  beeline_team* team;
  CommandQueues queues;
};

namespace {

static_assert(sizeof(beeline_queue_options) == 12 && offsetof(beeline_queue_options, device_engine) == 4);
static_assert(offsetof(beeline_queue_options, engine_threads) == 8);
static_assert(BEELINE_EQUAL == static_cast<int>(Compare::equal));
static_assert(BEELINE_NOT_EQUAL == static_cast<int>(Compare::not_equal));
static_assert(BEELINE_GREATER == static_cast<int>(Compare::greater));
static_assert(BEELINE_GREATER_EQUAL == static_cast<int>(Compare::greater_equal));
static_assert(BEELINE_LESS == static_cast<int>(Compare::less));
static_assert(BEELINE_LESS_EQUAL == static_cast<int>(Compare::less_equal));
static_assert(BEELINE_NO_TIMEOUT == Timeout::none().ns);

/// The arguments of a transfer, checked.
struct Move {
  std::byte* to;
  const std::byte* from;
  std::uint32_t peer;
};
Move move_of(const Team& team, void* destination, const void* source, std::size_t bytes, std::int32_t peer) {
  c::require_memory(destination, bytes, "destination");
  c::require_memory(source, bytes, "source");
  return {static_cast<std::byte*>(destination), static_cast<const std::byte*>(source), c::peer_of(team, peer)};
}

Compare comparison_of(std::int32_t compare) {
  c::require_enumerator(compare, 6, "compare");
  return static_cast<Compare>(compare);
}

/// The arguments of a put with a signal, as its C functions have them.
struct SignaledPut {
  void* destination;
  const void* source;
  std::size_t bytes;
  std::uint64_t* signal;
  std::uint64_t value;
  std::int32_t peer;
  std::uint32_t queue;
};
template <bool adds>
beeline_status put_with_signal(const char* function, beeline_team* team, const SignaledPut& call) noexcept {
  return operate(function, team, [&](Team& of, const Context& ctx) {
    const auto [to, from, peer] = move_of(of, call.destination, call.source, call.bytes, call.peer);
    c::require_pointer(call.signal, "signal");
    const QueueId queue = queue_of(call.queue);
    if constexpr (adds)
      return put_signal_add(Thread{}, ctx, to, from, call.bytes, call.signal, call.value, peer, queue);
    return put_signal(Thread{}, ctx, to, from, call.bytes, call.signal, call.value, peer, queue);
  });
}

/// Two signals.
using Pair [[gnu::vector_size(16), gnu::may_alias, gnu::aligned(8)]] = std::uint64_t;

/// Whether one of 16 signals is seen not to be 0. Vector loads, which a CPU does three times as fast as as many atomic
/// ones: 65,536 signals take some 6 us. They order nothing, and may see a store in part, so the caller looks at the
/// signals again, by atomic loads.
[[gnu::no_sanitize("thread")]] bool is_any_set(const std::uint64_t* signals) {
  const auto* const pairs = reinterpret_cast<const volatile Pair*>(signals);
  const Pair any = (pairs[0] | pairs[1] | pairs[2] | pairs[3]) | (pairs[4] | pairs[5] | pairs[6] | pairs[7]);
  return (any[0] | any[1]) != 0;
}

/// Index of the first signal that is not 0; `count` if there is none.
std::uint32_t first_set(const std::uint64_t* signals, std::uint32_t count) {
  std::uint32_t i = 0;
  while (i + 16 <= count && !is_any_set(signals + i)) i += 16;
  while (i < count && detail::load_signal(&signals[i], Order::memory) == 0) ++i;
  return i;
}

/// `operate` for a command queue: `body(team, context, queue)`.
template <class Body>
beeline_status post(const char* function, beeline_queues* queues, std::uint32_t queue, const Body& body) noexcept {
  beeline_team* team = nullptr;
  const beeline_status checked = c::guarded(function, [&] {
    const beeline_queues& of = object_of(queues, "queues");
    team = of.team;
    if (queue >= of.queues.channel().queues)
      c::refuse("queue", fmt::format("{} of {} queues", queue, of.queues.channel().queues));
  });
  if (checked != BEELINE_OK) return checked;
  return operate(function, team,
                 [&](Team& of, const Context& ctx) { return body(of, ctx, queues->queues.channel().queue(queue)); });
}

/// `post` for `flush` and `quiet`: the engine's reason is the text if it has refused commands.
template <class Drain>
beeline_status drain(const char* function, beeline_queues* queues, std::uint32_t queue, const Drain& wait) noexcept {
  return post(function, queues, queue, [&](Team&, const Context& ctx, CommandQueue of) {
    const Status status = wait(ctx, of);
    if (status == Status::invalid_argument)
      for (const std::string& refusal : queues->queues.refusals()) throw Error(status, refusal);
    return status;
  });
}

}  // namespace

beeline_status beeline_put(beeline_team* team, void* destination, const void* source, size_t bytes, int32_t peer,
                           uint32_t queue) noexcept {
  return operate("beeline_put", team, [&](Team& of, const Context& ctx) {
    const Move move = move_of(of, destination, source, bytes, peer);
    return put(Thread{}, ctx, move.to, move.from, bytes, move.peer, queue_of(queue));
  });
}

beeline_status beeline_get(beeline_team* team, void* destination, const void* source, size_t bytes,
                           int32_t peer) noexcept {
  return operate("beeline_get", team, [&](Team& of, const Context& ctx) {
    const Move move = move_of(of, destination, source, bytes, peer);
    return get(Thread{}, ctx, move.to, move.from, bytes, move.peer);
  });
}

beeline_status beeline_signal(beeline_team* team, uint64_t* signal, uint64_t value, int32_t peer,
                              uint32_t queue) noexcept {
  return operate("beeline_signal", team, [&](Team& of, const Context& ctx) {
    c::require_pointer(signal, "signal");
    return beeline::signal(Thread{}, ctx, signal, value, c::peer_of(of, peer), Order::memory, queue_of(queue));
  });
}

beeline_status beeline_signal_add(beeline_team* team, uint64_t* signal, uint64_t value, int32_t peer,
                                  uint32_t queue) noexcept {
  return operate("beeline_signal_add", team, [&](Team& of, const Context& ctx) {
    c::require_pointer(signal, "signal");
    return signal_add(Thread{}, ctx, signal, value, c::peer_of(of, peer), Order::memory, queue_of(queue));
  });
}

beeline_status beeline_put_signal(beeline_team* team, void* destination, const void* source, size_t bytes,
                                  uint64_t* signal, uint64_t value, int32_t peer, uint32_t queue) noexcept {
  return put_with_signal<false>("beeline_put_signal", team, {destination, source, bytes, signal, value, peer, queue});
}

beeline_status beeline_put_signal_add(beeline_team* team, void* destination, const void* source, size_t bytes,
                                      uint64_t* signal, uint64_t value, int32_t peer, uint32_t queue) noexcept {
  return put_with_signal<true>("beeline_put_signal_add", team,
                               {destination, source, bytes, signal, value, peer, queue});
}

beeline_status beeline_wait(beeline_team* team, const uint64_t* signal, int32_t compare, uint64_t value, int32_t peer,
                            uint64_t timeout_ns) noexcept {
  return operate("beeline_wait", team, [&](Team& of, const Context& ctx) {
    c::require_pointer(signal, "signal");
    return wait(Thread{}, ctx, signal, comparison_of(compare), value, c::source_of(of, peer), Timeout{timeout_ns});
  });
}

beeline_status beeline_wait_any(beeline_team* team, const uint64_t* signals, uint32_t count, uint64_t timeout_ns,
                                uint32_t* index) noexcept {
  return operate("beeline_wait_any", team, [&](Team&, const Context& ctx) {
    c::require_pointer(signals, "signals");
    c::require_pointer(index, "index");
    if (count == 0) c::refuse("count", "0 signals");
    if (reinterpret_cast<std::uintptr_t>(signals) % alignof(std::uint64_t) != 0)
      c::refuse("signals", "an address that is not a multiple of 8");
    const Awaited awaited{Operation::wait_any, no_peer, count, 0, Compare::not_equal};
    return poll_until(ctx, awaited, Timeout{timeout_ns}, [&](std::uint64_t&) {
      const std::uint32_t found = first_set(signals, count);
      if (found < count) *index = found;
      return found < count;
    });
  });
}

beeline_status beeline_test_signal(const uint64_t* signal, int32_t compare, uint64_t value) noexcept {
  return c::guarded("beeline_test_signal", [&] {
    c::require_pointer(signal, "signal");
    return test(signal, comparison_of(compare), value) ? Status::ok : Status::in_progress;
  });
}

beeline_status beeline_exchange(beeline_team* team, uint64_t* signal, uint64_t value, uint64_t* before) noexcept {
  return operate("beeline_exchange", team, [&](Team&, const Context& ctx) {
    c::require_pointer(signal, "signal");
    c::require_pointer(before, "before");
    return exchange(ctx, signal, value, *before);
  });
}

beeline_status beeline_fetch_add(beeline_team* team, uint64_t* target, uint64_t value, int32_t peer,
                                 uint64_t* before) noexcept {
  return operate("beeline_fetch_add", team, [&](Team& of, const Context& ctx) {
    c::require_pointer(target, "target");
    c::require_pointer(before, "before");
    return atomic_fetch_add(ctx, target, value, c::peer_of(of, peer), *before);
  });
}

beeline_status beeline_compare_swap(beeline_team* team, uint64_t* target, uint64_t expected, uint64_t value,
                                    int32_t peer, uint64_t* before) noexcept {
  return operate("beeline_compare_swap", team, [&](Team& of, const Context& ctx) {
    c::require_pointer(target, "target");
    c::require_pointer(before, "before");
    return atomic_compare_swap(ctx, target, expected, value, c::peer_of(of, peer), *before);
  });
}

beeline_status beeline_flush(beeline_team* team, uint32_t queue) noexcept {
  return operate("beeline_flush", team,
                 [&](Team&, const Context& ctx) { return flush(Thread{}, ctx, queue_of(queue)); });
}

beeline_status beeline_flush_within(beeline_team* team, uint32_t queue, uint64_t timeout_ns) noexcept {
  return operate("beeline_flush_within", team, [&](Team&, const Context& ctx) {
    const QueueId of = queue_of(queue);
    if (ctx.has_routes == 0) return flush(Thread{}, ctx, of);
    return flush(Thread{}, ctx, ctx.routes->queue(of.index), Timeout{timeout_ns});
  });
}

beeline_status beeline_quiet(beeline_team* team, uint32_t queue) noexcept {
  return operate("beeline_quiet", team,
                 [&](Team&, const Context& ctx) { return quiet(Thread{}, ctx, queue_of(queue)); });
}

beeline_status beeline_quiet_within(beeline_team* team, uint32_t queue, uint64_t timeout_ns) noexcept {
  return operate("beeline_quiet_within", team, [&](Team&, const Context& ctx) {
    const QueueId of = queue_of(queue);
    if (ctx.has_routes == 0) return quiet(Thread{}, ctx, of);
    return quiet(Thread{}, ctx, ctx.routes->queue(of.index), Timeout{timeout_ns});
  });
}

beeline_status beeline_queues_create(beeline_team* team, uint32_t count, const beeline_queue_options* options,
                                     beeline_queues** queues) noexcept {
  return c::collective("beeline_queues_create", team, [&](Team&) {
    c::require_pointer(queues, "queues");
    CommandQueueOptions wanted;
    if (options != nullptr) {
      const beeline_queue_options& given = c::structure_of(options, "options");
      wanted.engine = given.device_engine != 0 ? EngineKind::device : EngineKind::host;
      wanted.engine_threads = given.engine_threads;
    }
    *queues = std::make_unique<beeline_queues>(*team, count, wanted).release();
  });
}

beeline_status beeline_queues_destroy(beeline_queues* queues) noexcept {
  return c::guarded("beeline_queues_destroy", [&] { delete &object_of(queues, "queues"); });
}

beeline_status beeline_post_put(beeline_queues* queues, uint32_t queue, void* destination, const void* source,
                                size_t bytes, int32_t peer, uint64_t timeout_ns) noexcept {
  return post("beeline_post_put", queues, queue, [&](Team& of, const Context& ctx, CommandQueue to) {
    const Move move = move_of(of, destination, source, bytes, peer);
    return post_put(Thread{}, ctx, move.to, move.from, bytes, move.peer, to, Timeout{timeout_ns});
  });
}

beeline_status beeline_post_get(beeline_queues* queues, uint32_t queue, void* destination, const void* source,
                                size_t bytes, int32_t peer, uint64_t timeout_ns) noexcept {
  return post("beeline_post_get", queues, queue, [&](Team& of, const Context& ctx, CommandQueue to) {
    const Move move = move_of(of, destination, source, bytes, peer);
    return post_get(Thread{}, ctx, move.to, move.from, bytes, move.peer, to, Timeout{timeout_ns});
  });
}

beeline_status beeline_post_signal(beeline_queues* queues, uint32_t queue, uint64_t* signal, uint64_t value,
                                   int32_t peer, uint64_t timeout_ns) noexcept {
  return post("beeline_post_signal", queues, queue, [&](Team& of, const Context& ctx, CommandQueue to) {
    c::require_pointer(signal, "signal");
    return post_signal(Thread{}, ctx, signal, value, c::peer_of(of, peer), to, Timeout{timeout_ns});
  });
}

beeline_status beeline_post_put_signal(beeline_queues* queues, uint32_t queue, void* destination, const void* source,
                                       size_t bytes, uint64_t* signal, uint64_t value, int32_t peer,
                                       uint64_t timeout_ns) noexcept {
  return post("beeline_post_put_signal", queues, queue, [&](Team& of, const Context& ctx, CommandQueue to) {
    const Move move = move_of(of, destination, source, bytes, peer);
    c::require_pointer(signal, "signal");
    return post_put_signal(Thread{}, ctx, move.to, move.from, bytes, signal, value, move.peer, to, Timeout{timeout_ns});
  });
}

beeline_status beeline_queue_flush(beeline_queues* queues, uint32_t queue, uint64_t timeout_ns) noexcept {
  return drain("beeline_queue_flush", queues, queue,
               [&](const Context& ctx, CommandQueue of) { return flush(Thread{}, ctx, of, Timeout{timeout_ns}); });
}

beeline_status beeline_queue_quiet(beeline_queues* queues, uint32_t queue, uint64_t timeout_ns) noexcept {
  return drain("beeline_queue_quiet", queues, queue,
               [&](const Context& ctx, CommandQueue of) { return quiet(Thread{}, ctx, of, Timeout{timeout_ns}); });
}
