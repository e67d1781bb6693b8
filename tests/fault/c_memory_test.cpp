// SPDX-License-Identifier: Apache-2.0
// The C interface's functions of memory, streams and teams, once each, on ranks that are threads.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "tests/fault/c_ranks.hpp"

namespace beeline_test::c_interface_test {

namespace {

TEST(CInterface, MemoryStreamsAndTeams) {
  expect_passed(2, [](beeline_world* world, beeline_team* team) {
    const int32_t rank = beeline_team_rank(team), peer = peer_of(team);
    beeline_segment* segment = nullptr;
    check_ok(beeline_segment_create(world, rank == 0 ? BEELINE_MEMORY_HOST : BEELINE_MEMORY_PINNED,
                                    rank == 0 ? 4096 : 8192, &segment));
    beeline_part part{};
    part.struct_bytes = sizeof part;
    check_ok(beeline_segment_part(segment, 1, &part));
    BEELINE_CHECK_EQ(8192u, part.bytes);
    BEELINE_CHECK_EQ(BEELINE_MEMORY_PINNED, part.kind);
    alignas(16) std::array<int, 4> own{rank, 1, 2, 3}, got{};
    beeline_registered* registered = nullptr;
    check_ok(beeline_register(world, own.data(), sizeof own, &registered));
    check_ok(beeline_registered_part(registered, peer, &part));
    BEELINE_CHECK_EQ(sizeof own, part.bytes);
    check_ok(beeline_copy_from_registered(got.data(), registered, peer, 0, sizeof got));
    BEELINE_CHECK_EQ(peer, got[0]);
    check_ok(beeline_copy_to_registered(registered, peer, 4, got.data(), 4));
    check_ok(beeline_barrier(team, BEELINE_NO_TIMEOUT));
    BEELINE_CHECK_EQ(rank, own[1]);
    void* named = &part;
    check_ok(beeline_registered_alias(registered, &named));
    BEELINE_CHECK_EQ(nullptr, named);  // the world is on one node
    check_ok(beeline_segment_part(segment, peer, &part));
    check_ok(beeline_symmetric_address(world, part.address, &named));
    check_ok(beeline_put(team, named, own.data(), 4, peer, 0));
    check_refused(beeline_symmetric_address(world, own.data(), &named), "");
    check_ok(beeline_barrier(team, BEELINE_NO_TIMEOUT));
    check_ok(beeline_segment_part(segment, rank, &part));
    BEELINE_CHECK_EQ(peer, *static_cast<const int*>(part.address));

    int32_t kind = -1;
    check_ok(beeline_memory_kind(own.data(), &kind));
    BEELINE_CHECK_EQ(BEELINE_MEMORY_HOST, kind);
    check_refused(beeline_memory_kind(nullptr, &kind), "argument address: a null pointer");

    auto* const inbox = allocate<int>(team, 4);
    uint64_t* const signal = allocate_signal(team);
    beeline_stream* stream = nullptr;
    beeline_event* event = nullptr;
    check_ok(beeline_stream_create(world, 1, &stream));
    check_ok(beeline_event_create(stream, &event));
    // Puts and signals on streams take addresses of segments, too.
    const auto in_segment = [&](int32_t of, std::size_t offset) {
      check_ok(beeline_segment_part(segment, of, &part));
      check_ok(beeline_symmetric_address(world, static_cast<std::byte*>(part.address) + offset, &named));
      return named;
    };
    check_ok(beeline_put_on_stream(team, in_segment(peer, 64), own.data() + 2, 4, peer, stream));
    check_ok(beeline_signal_on_stream(team, static_cast<uint64_t*>(in_segment(peer, 128)), 9, peer, stream));
    check_ok(
        beeline_wait(team, static_cast<uint64_t*>(in_segment(rank, 128)), BEELINE_EQUAL, 9, peer, BEELINE_NO_TIMEOUT));
    BEELINE_CHECK_EQ(2, *static_cast<const int*>(in_segment(rank, 64)));
    check_ok(beeline_put_signal_on_stream(team, inbox, own.data(), 8, signal, 1, peer, stream));
    check_ok(beeline_wait_on_stream(team, signal, 1, peer, stream));
    check_ok(beeline_copy_on_stream(stream, got.data(), inbox, 8));
    check_ok(beeline_fill_on_stream(stream, inbox, 7, 4));
    check_ok(beeline_event_record(event, stream));
    check_ok(beeline_stream_await(beeline_default_stream(world), event));
    check_ok(beeline_put_on_stream(team, inbox + 2, own.data() + 2, 4, peer, nullptr));
    check_ok(beeline_signal_on_stream(team, signal, 2, peer, nullptr));
    check_ok(beeline_event_synchronize(event, BEELINE_NO_TIMEOUT));
    check_ok(beeline_synchronize(beeline_default_stream(world), BEELINE_NO_TIMEOUT));
    check_ok(beeline_wait(team, signal, BEELINE_EQUAL, 2, peer, BEELINE_NO_TIMEOUT));
    BEELINE_CHECK_EQ(peer, got[0]);
    BEELINE_CHECK_EQ(0x07070707, inbox[0]);
    BEELINE_CHECK_EQ(2, inbox[2]);
    check_refused(beeline_stream_destroy(beeline_default_stream(world)), "argument stream: the default stream");
    BEELINE_CHECK_EQ(nullptr, beeline_stream_native(stream));
    beeline_stream* adopted = nullptr;
    BEELINE_CHECK_EQ(static_cast<beeline_status>(BEELINE_UNAVAILABLE), beeline_stream_adopt(world, nullptr, &adopted));
    check_ok(beeline_event_destroy(event));
    check_ok(beeline_stream_destroy(stream));

    beeline_team* alone = nullptr;
    check_ok(beeline_team_create(world, &rank, 1, &alone));
    BEELINE_CHECK_EQ(1, beeline_team_size(alone));
    BEELINE_CHECK_EQ(rank, beeline_team_world_rank(alone, 0));
    check_ok(beeline_team_destroy(alone));
    beeline_device device{};
    device.struct_bytes = sizeof device;
    check_ok(beeline_world_device(world, peer, &device));
    BEELINE_CHECK_EQ(BEELINE_HOST, device.kind);
    beeline_health health{};
    health.struct_bytes = sizeof health;
    check_ok(beeline_world_health(world, peer, &health));
    BEELINE_CHECK_EQ(BEELINE_HEALTHY, health.state);
    check_ok(beeline_free(team, inbox));
    check_ok(beeline_deregister(registered));
    check_ok(beeline_segment_destroy(segment));
  });
}

}  // namespace

}  // namespace beeline_test::c_interface_test
