// SPDX-License-Identifier: Apache-2.0
// Who may touch what, and what happens to the rest: on CPUs, in a world of host ranks one of which counts as a GPU.
#include "beeline/device/access.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

constexpr DeviceKind host = DeviceKind::host, gpu = DeviceKind::gpu;

/// A context of two members of these kinds.
Context of_kinds(DeviceKind first, DeviceKind second) {
  Context ctx{};
  ctx.slot_shift = min_slot_shift;
  ctx.size = ctx.slots = 2;
  ctx.gpu_members = (first == gpu ? 1u : 0u) | (second == gpu ? 2u : 0u);
  ctx.mixed = first != second;
  return ctx;
}

const std::byte* const in_heap = reinterpret_cast<const std::byte*>(std::uintptr_t{1} << 32 | 4096);
const std::byte* const in_pinned = in_heap + (std::uintptr_t{3} << 30);

TEST(Access, OfAMixedWorldFollowsTheMatrix) {
  for (const std::uint32_t peer : {0u, 1u}) {
    const Context ctx = peer == 0 ? of_kinds(gpu, host) : of_kinds(host, gpu);
    const std::uint32_t other = 1 - peer;
    EXPECT_EQ(gpu, ctx.kind_of(peer));
    EXPECT_EQ(host, ctx.kind_of(other));
    for (const std::byte* address : {in_heap, in_pinned})
      for (const std::uint32_t any : {0u, 1u}) {
        EXPECT_TRUE(detail::may_touch(ctx, gpu, Access::load_store, address, any)) << "kernels reach all memory";
        EXPECT_EQ(any == peer && address == in_heap, detail::may_touch(ctx, gpu, Access::atomic, address, any));
        for (const Access access : {Access::load_store, Access::atomic})
          EXPECT_EQ(any == other || address == in_pinned, detail::may_touch(ctx, host, access, address, any));
      }
  }
}

TEST(Access, OfOneKindIsNotRestricted) {
  for (const std::byte* address : {in_heap, in_pinned})
    for (const Access access : {Access::load_store, Access::atomic}) {
      EXPECT_TRUE(detail::may_touch(of_kinds(gpu, gpu), gpu, access, address, 1));
      EXPECT_TRUE(detail::may_touch(of_kinds(host, host), host, access, address, 1));
    }
  EXPECT_FALSE(detail::may_touch(of_kinds(gpu, gpu), host, Access::load_store, in_heap, 1))
      << "a CPU thread of a GPU rank";
}

TEST(Access, TheLastMemberHasABit) {
  Context ctx{};
  ctx.size = max_ranks;
  ctx.gpu_members = std::uint64_t{1} << (max_ranks - 1);
  EXPECT_EQ(gpu, ctx.kind_of(max_ranks - 1));
  EXPECT_EQ(host, ctx.kind_of(max_ranks - 2));
}

/// Words of two ranks, and a context of rank 0 in which rank 1 is a GPU.
struct Scene {
  explicit Scene(World& world)
      : heap(world, 2), pinned(world, 2, Heap::pinned), mine(world, 2), ctx(world.host_context()) {
    ctx.gpu_members = 2;
    ctx.mixed = true;
  }
  SymmetricArray<std::uint64_t> heap, pinned, mine;
  Context ctx;
};

/// A block of one CPU thread.
struct OneThread {
  HostTeamState state{1, 1'000'000'000};
  HostTeam team{&state, 0};
};

struct Refused {
  const char* name;
  Operation operation;
  Status (*call)(const Scene&, std::uint64_t* target);
};

template <class Atomic>
Status without_status(Atomic atomic) {
  return atomic() == 0 ? Status::unreachable : Status::ok;
}

const std::vector<Refused>& refused() {
  static const std::vector<Refused> all = {
      {"put", Operation::put, [](const Scene& s, auto* t) { return put(Thread{}, s.ctx, t, s.mine.data(), 2, 1); }},
      {"put_value", Operation::put, [](const Scene& s, auto* t) { return put_value(s.ctx, t, std::uint64_t{9}, 1); }},
      {"get", Operation::get, [](const Scene& s, auto* t) { return get(Thread{}, s.ctx, s.mine.data(), t, 2, 1); }},
      {"put_signal", Operation::put,
       [](const Scene& s, auto* t) { return put_signal(Thread{}, s.ctx, t, s.mine.data(), 1, t + 1, 9, 1); }},
      {"put_strided", Operation::put,
       [](const Scene& s, auto* t) {
         return put_strided(Thread{}, s.ctx, t, s.mine.data(), StridedShape{2, 1, 1, 1}, 1);
       }},
      {"get_strided", Operation::get,
       [](const Scene& s, auto* t) {
         return get_strided(Thread{}, s.ctx, s.mine.data(), t, StridedShape{2, 1, 1, 1}, 1);
       }},
      {"bulk_put", Operation::put,
       [](const Scene& s, auto* t) { return BulkPort(OneThread().team, s.ctx, nullptr).put(t, s.mine.data(), 2, 1); }},
      {"bulk_get", Operation::get,
       [](const Scene& s, auto* t) { return BulkPort(OneThread().team, s.ctx, nullptr).get(s.mine.data(), t, 2, 1); }},
      {"signal", Operation::signal, [](const Scene& s, auto* t) { return signal(Thread{}, s.ctx, t, 9, 1); }},
      {"signal_add", Operation::signal_add,
       [](const Scene& s, auto* t) { return signal_add(Thread{}, s.ctx, t, 9, 1); }},
      {"add", Operation::atomic, [](const Scene& s, auto* t) { return atomic_add(s.ctx, t, 9, 1); }},
      {"and", Operation::atomic, [](const Scene& s, auto* t) { return atomic_and(s.ctx, t, 9, 1); }},
      {"or", Operation::atomic, [](const Scene& s, auto* t) { return atomic_or(s.ctx, t, 9, 1); }},
      {"xor", Operation::atomic, [](const Scene& s, auto* t) { return atomic_xor(s.ctx, t, 9, 1); }},
      {"fetch_add", Operation::atomic,
       [](const Scene& s, auto* t) { return without_status([&] { return atomic_fetch_add(s.ctx, t, 9, 1); }); }},
      {"fetch_and", Operation::atomic,
       [](const Scene& s, auto* t) { return without_status([&] { return atomic_fetch_and(s.ctx, t, 9, 1); }); }},
      {"fetch_or", Operation::atomic,
       [](const Scene& s, auto* t) { return without_status([&] { return atomic_fetch_or(s.ctx, t, 9, 1); }); }},
      {"fetch_xor", Operation::atomic,
       [](const Scene& s, auto* t) { return without_status([&] { return atomic_fetch_xor(s.ctx, t, 9, 1); }); }},
      {"fetch_min", Operation::atomic,
       [](const Scene& s, auto* t) { return without_status([&] { return atomic_fetch_min(s.ctx, t, 9, 1); }); }},
      {"fetch_max", Operation::atomic,
       [](const Scene& s, auto* t) { return without_status([&] { return atomic_fetch_max(s.ctx, t, 99, 1); }); }},
      {"exchange", Operation::atomic,
       [](const Scene& s, auto* t) { return without_status([&] { return atomic_exchange(s.ctx, t, 9, 1); }); }},
      {"compare_swap", Operation::atomic, [](const Scene& s, auto* t) {
         return without_status([&] { return atomic_compare_swap(s.ctx, t, 33, 9, 1); });
       }}};
  return all;
}

constexpr std::uint64_t before = 33;

void expect_words(const SymmetricArray<std::uint64_t>& words) {
  for (std::size_t i = 0; i < words.count(); ++i) BEELINE_CHECK_EQ(before, words.data()[i]);
}

/// Rank 0 tries; both ranks hear of it, and nothing has changed.
void refuse_one(World& world, const Refused& each) {
  const Scene scene(world);
  for (const SymmetricArray<std::uint64_t>* words : {&scene.heap, &scene.pinned, &scene.mine})
    for (std::size_t i = 0; i < words->count(); ++i) words->data()[i] = before;
  world.barrier();
  if (world.rank() == 0) {
    BEELINE_CHECK(has_loads_and_stores(scene.ctx, scene.pinned.data(), 1));
    BEELINE_CHECK(has_atomics(scene.ctx, scene.heap.data(), 0));
    BEELINE_CHECK(each.call(scene, scene.pinned.data()) == Status::ok);  // host memory, whoever owns it
    BEELINE_CHECK(!world.failed());
    for (std::uint64_t* word : {scene.mine.data(), scene.mine.data() + 1}) *word = before;
    BEELINE_CHECK(!has_loads_and_stores(scene.ctx, scene.heap.data(), 1));
    BEELINE_CHECK(!has_atomics(scene.ctx, scene.heap.data(), 1));
  }
  world.barrier();
  const std::string words = join("rank 0: ", name(each.operation), " on rank 1 refused");
  if (world.rank() == 0) {
    BEELINE_CHECK(each.call(scene, scene.heap.data()) == Status::unreachable);
    check_error(Status::unreachable, {words, "CPU threads", "(unreachable)"}, [&] { world.check(); });
    const WaitRecord record = world.failed_waits().front();  // before that of the other rank's barrier, if it has any
    BEELINE_CHECK_EQ(static_cast<std::uint32_t>(each.operation), record.operation);
    BEELINE_CHECK_EQ(static_cast<std::uint32_t>(Status::unreachable), record.status);
    BEELINE_CHECK_EQ(1u, record.peer);
  } else {
    check_error(Status::aborted, {words}, [&] { world.barrier(); });
  }
  expect_words(scene.heap);
  expect_words(scene.mine);
}

TEST(Access, WhatIsRefusedTouchesNothingAndIsNamed) {
  for (const Refused& each : refused()) {
    SCOPED_TRACE(each.name);
    Config config = test_config();
    config.device = "cpu";
    expect_all_passed(run_ranks(
        WorldKind::threads, 2, [&](World& world) { refuse_one(world, each); }, config));
  }
}

}  // namespace

}  // namespace beeline_test
