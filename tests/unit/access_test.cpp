// SPDX-License-Identifier: Apache-2.0
// Which accesses are allowed and how others are refused: on CPUs, in a world of host ranks one of which acts as a GPU.
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

/// A context of two members of these kinds; GPUs have no atomics on host memory.
Context of_kinds(DeviceKind first, DeviceKind second) {
  Context ctx{};
  ctx.slot_shift = min_slot_shift;
  ctx.size = ctx.slots = 2;
  ctx.gpu_members = (first == gpu ? 1u : 0u) | (second == gpu ? 2u : 0u);
  ctx.mixed = first != second;
  ctx.guarded_offsets = ctx.mixed ? ~std::uint64_t{0} : std::uint64_t{1} << (min_slot_shift - 1);
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

TEST(Access, OfOneKindLacksAtomicsOfSeveralGpusOnHostMemory) {
  for (const std::byte* address : {in_heap, in_pinned})
    for (const Access access : {Access::load_store, Access::atomic}) {
      const bool allowed = access == Access::load_store || address == in_heap;
      EXPECT_EQ(allowed, detail::may_touch(of_kinds(gpu, gpu), gpu, access, address, 1));
      EXPECT_TRUE(detail::may_touch(of_kinds(host, host), host, access, address, 1));
    }
  EXPECT_FALSE(detail::may_touch(of_kinds(gpu, gpu), host, Access::load_store, in_heap, 1))
      << "a CPU thread of a GPU rank";
}

TEST(Access, ToAtomicsIsOpenWhereTheyExcludeAllOthers) {
  for (const DeviceKind second : {gpu, host})
    for (const std::byte* address : {in_heap, in_pinned})
      for (const std::uint32_t peer : {0u, 1u}) {
        Context ctx = of_kinds(gpu, second);
        const bool in_gpu_memory = address == in_heap && ctx.kind_of(peer) == gpu;
        EXPECT_TRUE(in_gpu_memory || ctx.is_guarded(address));
        ctx.guarded_offsets = 0;
        EXPECT_FALSE(ctx.is_guarded(address));
        EXPECT_TRUE(detail::may_touch(ctx, gpu, Access::atomic, address, peer));
      }
}

/// A device of a world: the first GPU, the second GPU, or a CPU (`which` < 0).
Device device_of(int which, bool host_atomics) {
  Device device;
  if (which < 0) return device;
  device.kind = gpu;
  device.uuid = which == 0 ? "GPU-0" : "GPU-1";
  device.host_atomics = host_atomics;
  return device;
}

TEST(Access, OfKernelsToHostMemoryDependsOnTheWorld) {
  struct World {
    std::vector<int> devices;
    bool without,
        with;  ///< whether rank 0's kernels have atomics on host memory, if GPUs lack or have native ones there
  };
  const World worlds[] = {{{0}, true, true},         {{0, 0, 0}, true, true}, {{0, 1}, false, true},
                          {{0, -1}, false, true},    {{-1, 0}, true, true},   {{-1, -1}, true, true},
                          {{0, 0, -1}, false, true}, {{0, 0, 1}, false, true}};
  for (const World& world : worlds)
    for (const bool native : {false, true}) {
      std::vector<Device> devices;
      for (const int each : world.devices) devices.push_back(device_of(each, native));
      EXPECT_EQ(native ? world.with : world.without, kernels_have_host_atomics(devices, 0))
          << devices.size() << " ranks, the last on " << world.devices.back();
    }
  const std::vector<Device> differ = {device_of(0, true), device_of(1, false)};
  EXPECT_TRUE(kernels_have_host_atomics(differ, 0));
  EXPECT_FALSE(kernels_have_host_atomics(differ, 1));
}

TEST(Access, TheLastMemberHasABit) {
  Context ctx{};
  ctx.size = max_node_ranks;
  ctx.gpu_members = std::uint64_t{1} << (max_node_ranks - 1);
  EXPECT_EQ(gpu, ctx.kind_of(max_node_ranks - 1));
  EXPECT_EQ(host, ctx.kind_of(max_node_ranks - 2));
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

/// A block with one CPU thread.
struct OneThread {
  HostTeamState state{1, 1'000'000'000, 64};
  HostTeam team{&state, 0};
};

std::uint64_t old = 0;  ///< the value that fetching atomics returned

struct Refused {
  const char* name;
  Operation operation;
  Status (*call)(const Scene&, std::uint64_t* target);
};

const std::vector<Refused>& refused() {
  static const std::vector<Refused> all = {
      {"put", Operation::put, [](const Scene& s, auto* t) { return put(Thread{}, s.ctx, t, s.mine.data(), 2, 1); }},
      {"put_value", Operation::put, [](const Scene& s, auto* t) { return put_value(s.ctx, t, std::uint64_t{9}, 1); }},
      {"get", Operation::get, [](const Scene& s, auto* t) { return get(Thread{}, s.ctx, s.mine.data(), t, 2, 1); }},
      {"put_signal", Operation::put,
       [](const Scene& s, auto* t) { return put_signal(Thread{}, s.ctx, t, s.mine.data(), 1, t + 1, 9, 1); }},
      {"put_signal_add", Operation::put,
       [](const Scene& s, auto* t) { return put_signal_add(Thread{}, s.ctx, t, s.mine.data(), 1, t + 1, 9, 1); }},
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
      {"fetch_add", Operation::atomic, [](const Scene& s, auto* t) { return atomic_fetch_add(s.ctx, t, 9, 1, old); }},
      {"fetch_and", Operation::atomic, [](const Scene& s, auto* t) { return atomic_fetch_and(s.ctx, t, 9, 1, old); }},
      {"fetch_or", Operation::atomic, [](const Scene& s, auto* t) { return atomic_fetch_or(s.ctx, t, 9, 1, old); }},
      {"fetch_xor", Operation::atomic, [](const Scene& s, auto* t) { return atomic_fetch_xor(s.ctx, t, 9, 1, old); }},
      {"fetch_min", Operation::atomic, [](const Scene& s, auto* t) { return atomic_fetch_min(s.ctx, t, 9, 1, old); }},
      {"fetch_max", Operation::atomic, [](const Scene& s, auto* t) { return atomic_fetch_max(s.ctx, t, 99, 1, old); }},
      {"exchange", Operation::atomic, [](const Scene& s, auto* t) { return atomic_exchange(s.ctx, t, 9, 1, old); }},
      {"compare_swap", Operation::atomic,
       [](const Scene& s, auto* t) { return atomic_compare_swap(s.ctx, t, 33, 9, 1, old); }}};
  return all;
}

constexpr std::uint64_t first_value = 33;

void expect_words(const SymmetricArray<std::uint64_t>& words) {
  for (std::size_t i = 0; i < words.count(); ++i) BEELINE_CHECK_EQ(first_value, words.data()[i]);
}

/// Rank 0 makes the call; both ranks get the error, and no memory has changed.
void refuse_one(World& world, const Refused& each) {
  const Scene scene(world);
  for (const SymmetricArray<std::uint64_t>* words : {&scene.heap, &scene.pinned, &scene.mine})
    for (std::size_t i = 0; i < words->count(); ++i) words->data()[i] = first_value;
  world.barrier();
  if (world.rank() == 0) {
    BEELINE_CHECK(has_loads_and_stores(scene.ctx, scene.pinned.data(), 1));
    BEELINE_CHECK(has_atomics(scene.ctx, scene.heap.data(), 0));
    BEELINE_CHECK(each.call(scene, scene.pinned.data()) == Status::ok);  // host memory, whichever rank owns it
    BEELINE_CHECK(!world.failed());
    for (std::uint64_t* word : {scene.mine.data(), scene.mine.data() + 1}) *word = first_value;
    BEELINE_CHECK(!has_loads_and_stores(scene.ctx, scene.heap.data(), 1));
    BEELINE_CHECK(!has_atomics(scene.ctx, scene.heap.data(), 1));
  }
  world.barrier();
  const std::string words = join("rank 0: ", name(each.operation), " on rank 1 refused");
  if (world.rank() == 0) {
    BEELINE_CHECK(each.call(scene, scene.heap.data()) == Status::unreachable);
    check_error(Status::unreachable, {words, "CPU threads"}, [&] { world.check(); });
    const WaitRecord record = world.failed_waits().front();  // before the record of rank 1's barrier, if there is one
    BEELINE_CHECK_EQ(static_cast<std::uint32_t>(each.operation), record.operation);
    BEELINE_CHECK_EQ(static_cast<std::uint32_t>(Status::unreachable), record.status);
    BEELINE_CHECK_EQ(1u, record.peer);
  } else {
    check_error(Status::aborted, {words}, [&] { world.barrier(); });
  }
  expect_words(scene.heap);
  expect_words(scene.mine);
}

/// CPU threads check arguments even in a unit like this one, compiled without BEELINE_CHECKED.
TEST(Access, OfCpusChecksArgumentsInEveryBuild) {
  expect_passed_on_cpus(1, [](World& world) {
    const SymmetricArray<std::uint64_t> words(world, 2);
    const Context& ctx = world.host_context();
    words.data()[0] = first_value;
    BEELINE_CHECK(put(Thread{}, ctx, words.data(), words.data() + 1, 1, 1) == Status::invalid_argument);
    BEELINE_CHECK_EQ(first_value, words.data()[0]);
    check_error(Status::invalid_argument, {"rank 0: put refused: peer 1 is no rank of the team: these are 0 to 0"},
                [&] { world.check(); });
  });
}

/// A CPU thread of a GPU rank must not access that rank's own GPU memory by `exchange`.
TEST(Access, OfCpusToGpuMemoryIsRefusedToExchange) {
  expect_passed_on_cpus(1, [](World& world) {
    const SymmetricArray<std::uint64_t> heap(world, 1), pinned(world, 1, Heap::pinned);
    Context ctx = world.host_context();
    ctx.gpu_members = 1;
    std::uint64_t elsewhere = first_value, held = 0;
    BEELINE_CHECK(exchange(ctx, pinned.data(), first_value, held) == Status::ok);
    BEELINE_CHECK_EQ(std::uint64_t{0}, held);
    BEELINE_CHECK(exchange(ctx, &elsewhere, 1, held) == Status::ok);
    BEELINE_CHECK_EQ(first_value, held);
    BEELINE_CHECK(exchange(ctx, heap.data(), first_value, held) == Status::unreachable);
    BEELINE_CHECK_EQ(first_value, held);
    BEELINE_CHECK_EQ(std::uint64_t{0}, heap.data()[0]);
    check_error(Status::unreachable, {"rank 0: exchange refused", "CPU threads"}, [&] { world.check(); });
  });
}

TEST(Access, WhatIsRefusedTouchesNothingAndIsNamed) {
  for (const Refused& each : refused()) {
    SCOPED_TRACE(each.name);
    expect_passed_on_cpus(2, [&](World& world) { refuse_one(world, each); });
  }
}

}  // namespace

}  // namespace beeline_test
