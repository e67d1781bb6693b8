// SPDX-License-Identifier: Apache-2.0
// The C interface as its callers see it: calls that it refuses, with their texts; time-outs and deadlines; each group
// of functions once, on ranks that are threads.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/fault/c_ranks.hpp"

namespace beeline_test::c_interface_test {

namespace {

TEST(CInterface, HeaderAndLibraryThatDifferRefuseEachOther) {
  beeline_world* world = nullptr;
  EXPECT_EQ(BEELINE_UNAVAILABLE, beeline_world_create_as(BEELINE_VERSION + 1000, nullptr, &world));
  EXPECT_EQ(nullptr, world);
  const std::string text = beeline_last_error();
  EXPECT_NE(std::string::npos, text.find("headers of Beeline 0.1.1 (interface 2)")) << text;
  EXPECT_NE(std::string::npos, text.find("library of Beeline 0.1.0 (interface 2)")) << text;
  int32_t exit_status = -1;
  EXPECT_EQ(BEELINE_UNAVAILABLE, beeline_run_as(BEELINE_VERSION + 1, nullptr, call_body, nullptr, &exit_status));
  EXPECT_EQ(BEELINE_VERSION, beeline_version());
}

TEST(CInterface, BadArgumentsAreNamed) {
  beeline_world* world = nullptr;
  check_refused(beeline_world_create(nullptr, nullptr),
                "beeline_world_create: invalid_argument: argument world: a null pointer");
  Settings settings(2);
  check_refused(beeline_config_set(settings.get(), "DEADLINE", "5"),
                "beeline_config_set: invalid_argument: BEELINE_DEADLINE is no setting: the nearest one is "
                "BEELINE_DEADLINE_S");
  check_refused(beeline_config_set(settings.get(), "ENGINE_THREADS", "9"),
                "BEELINE_ENGINE_THREADS=\"9\": expected a number from 1 to 8");
  check_refused(beeline_config_set(settings.get(), "RANK", "2"), "BEELINE_RANK=\"2\": expected a number from 0 to 1");
  check_refused(beeline_config_set(settings.get(), "SIZE", nullptr), "argument value: a null pointer");
  check_refused(beeline_world_create(reinterpret_cast<beeline_config*>(&settings), &world),
                "argument config: a handle of another type");
  check_refused(beeline_barrier(nullptr, 0), "beeline_barrier: invalid_argument: argument team: a null handle");
  EXPECT_EQ(nullptr, beeline_world_team(nullptr));
  EXPECT_EQ(-1, beeline_team_size(nullptr));
  EXPECT_STREQ("invalid_argument", beeline_status_name(BEELINE_INVALID_ARGUMENT));
  EXPECT_EQ(-1, beeline_algorithm("fastest"));
  EXPECT_EQ(1, run_ranks(Settings(2), [](beeline_world* of, beeline_team* team) {
              auto* const memory = allocate<int>(team, 16);
              uint64_t* const signal = allocate_signal(team);
              int value = 0;
              check_refused(beeline_put(reinterpret_cast<beeline_team*>(of), memory, &value, 4, 0, 0),
                            "beeline_put: invalid_argument: argument team: a handle of another type");
              check_refused(beeline_put(team, memory, &value, 4, 2, 0), "argument peer: rank 2 of a team of 2");
              check_refused(beeline_put(team, memory, nullptr, 4, 1, 0), "argument source: a null pointer");
              check_refused(beeline_put_signal(team, memory, &value, 4, nullptr, 1, 1, 0),
                            "argument signal: a null pointer");
              check_refused(beeline_put(team, memory, &value, 4, 1, 32), "argument queue: 32, where 0 to 31 are known");
              check_refused(beeline_wait(team, signal, 6, 0, 0, 0), "argument compare: 6, where 0 to 5 are known");
              check_refused(beeline_wait_any(team, signal, 0, 0, nullptr), "argument index: a null pointer");
              check_refused(beeline_allocate(team, 16, 2, nullptr), "argument heap: 2, where 0 to 1 are known");
              check_refused(beeline_world_close(of), "beeline_run made this world, and ends it");
              check_refused(beeline_team_destroy(team), "argument team: the world's");
              beeline_context context;
              check_refused(beeline_team_context(team, 8, &context), "struct_bytes: 8, and a context has 416 bytes");
              beeline_device device{};
              check_refused(beeline_world_device(of, 0, &device), "argument device: struct_bytes is 0");
              BEELINE_CHECK_EQ(0, beeline_team_failed(team));  // none of these errors aborts the team
              check_ok(beeline_barrier(team, BEELINE_NO_TIMEOUT));
              // An address outside symmetric memory aborts it.
              if (beeline_team_rank(team) == 0)
                check_refused(beeline_put(team, &value, &value, 4, 1, 0), "rank 0");
              else
                BEELINE_CHECK(beeline_barrier(team, BEELINE_NO_TIMEOUT) != BEELINE_OK);
            }));
}

TEST(CInterface, ATimeOutHarmsNothingAndADeadlineNamesThePeer) {
  Settings config(2);
  config.set("DEADLINE_S", "1");
  EXPECT_EQ(1, run_ranks(config, [](beeline_world* world, beeline_team* team) {
              uint64_t* const signal = allocate_signal(team);
              BEELINE_CHECK_EQ(static_cast<beeline_status>(BEELINE_TIMEOUT),
                               beeline_wait(team, signal, BEELINE_EQUAL, 1, BEELINE_ANY_RANK, 1'000'000));
              BEELINE_CHECK_EQ(static_cast<beeline_status>(BEELINE_IN_PROGRESS),
                               beeline_test_signal(signal, BEELINE_EQUAL, 1));
              check_ok(beeline_barrier(team, BEELINE_NO_TIMEOUT));
              check_ok(beeline_signal(team, signal, 1, peer_of(team), 0));
              check_ok(beeline_wait(team, signal, BEELINE_EQUAL, 1, peer_of(team), BEELINE_NO_TIMEOUT));
              check_ok(beeline_world_check(world));
              const beeline_status status =
                  beeline_wait(team, signal, BEELINE_EQUAL, 7, peer_of(team), BEELINE_NO_TIMEOUT);
              BEELINE_CHECK(status == BEELINE_DEADLINE || status == BEELINE_ABORTED);
              for (const char* part : {"beeline_wait: ", "expected == 7", "observed 1"})
                BEELINE_CHECK_CONTAINS(beeline_last_error(), part);
              BEELINE_CHECK_EQ(1, beeline_team_failed(team));
              BEELINE_CHECK(beeline_world_check(world) != BEELINE_OK);
            }));
}

TEST(CInterface, OneSidedOperations) {
  expect_passed(2, [](beeline_world*, beeline_team* team) {
    const int32_t peer = peer_of(team);
    auto* const inbox = allocate<uint64_t>(team, 8);
    uint64_t* const signal = allocate_signal(team);
    const std::array<uint64_t, 4> mine{1, 2, 3, 4};
    check_ok(beeline_put(team, inbox, mine.data(), 16, peer, 1));
    check_ok(beeline_put_signal(team, inbox + 2, &mine[2], 16, signal, 1, peer, 1));
    check_ok(beeline_wait(team, signal, BEELINE_GREATER_EQUAL, 1, peer, BEELINE_NO_TIMEOUT));
    BEELINE_CHECK_EQ(0, std::memcmp(inbox, mine.data(), 32));
    check_ok(beeline_put_signal_add(team, inbox + 4, mine.data(), 8, signal, 4, peer, 0));
    check_ok(beeline_signal_add(team, signal, 5, peer, 0));
    check_ok(beeline_wait(team, signal, BEELINE_EQUAL, 10, peer, BEELINE_NO_TIMEOUT));
    uint32_t index = 9;
    uint64_t before = 0, got = 0;
    check_ok(beeline_wait_any(team, signal, 1, BEELINE_NO_TIMEOUT, &index));
    check_ok(beeline_exchange(team, signal, 0, &before));
    BEELINE_CHECK_EQ(0u, index);
    BEELINE_CHECK_EQ(10u, before);
    check_ok(beeline_get(team, &got, inbox + 4, sizeof got, peer));
    BEELINE_CHECK_EQ(1u, got);
    check_ok(beeline_flush(team, 1));
    check_ok(beeline_flush_within(team, 1, 0));
    check_ok(beeline_quiet(team, 1));
    check_ok(beeline_quiet_within(team, 1, 0));
    check_ok(beeline_barrier(team, BEELINE_NO_TIMEOUT));
    check_ok(beeline_fetch_add(team, inbox, 10, peer, &before));  // 1 on each rank
    BEELINE_CHECK_EQ(1u, before);
    check_ok(beeline_compare_swap(team, inbox, 5, 6, peer, &before));
    BEELINE_CHECK_EQ(11u, before);
    check_ok(beeline_compare_swap(team, inbox, 11, 6, peer, &before));
    check_ok(beeline_get(team, &got, inbox, sizeof got, peer));
    BEELINE_CHECK_EQ(6u, got);
    void* there = nullptr;
    check_ok(beeline_address_on(team, inbox, peer, &there));
    beeline_context context;
    check_ok(beeline_team_host_context(team, sizeof context, &context));
    BEELINE_CHECK_EQ(
        there, static_cast<void*>(reinterpret_cast<std::byte*>(inbox) + (int64_t{context.distances[peer]} << 32)));
    BEELINE_CHECK_EQ(BEELINE_ROUTE_DIRECT, beeline_team_route(team, peer));
  });
}

TEST(CInterface, TheFirstOfManySignalsIsFound) {
  expect_passed(1, [](beeline_world*, beeline_team* team) {
    constexpr uint32_t count = 21;
    uint64_t* signals = nullptr;
    uint32_t index = count;
    check_ok(beeline_allocate_signals(team, count, BEELINE_HEAP_SYMMETRIC, &signals));
    BEELINE_CHECK_EQ(BEELINE_TIMEOUT, beeline_wait_any(team, signals, count, 0, &index));
    for (uint32_t i = count; i-- > 0;) {
      check_ok(beeline_signal(team, signals + i, i + 1, 0, 0));
      check_ok(beeline_wait_any(team, signals, count, 0, &index));
      BEELINE_CHECK_EQ(i, index);
    }
    check_refused(
        beeline_wait_any(team, reinterpret_cast<uint64_t*>(reinterpret_cast<std::byte*>(signals) + 4), 1, 0, &index),
        "argument signals: an address that is not a multiple of 8");
  });
}

TEST(CInterface, CommandQueues) {
  expect_passed(2, [](beeline_world*, beeline_team* team) {
    const int32_t peer = peer_of(team);
    auto* const inbox = allocate<uint64_t>(team, 64);
    uint64_t* const signal = allocate_signal(team);
    beeline_queues* queues = nullptr;
    check_ok(beeline_queues_create(team, 2, nullptr, &queues));
    check_refused(beeline_post_put(queues, 2, inbox, inbox, 8, peer, 0), "argument queue: 2 of 2 queues");
    std::vector<uint64_t> mine(32, 5), got(32);
    check_ok(beeline_post_put(queues, 1, inbox, mine.data(), 256, peer, BEELINE_NO_TIMEOUT));
    check_ok(beeline_post_put_signal(queues, 1, inbox + 32, mine.data(), 256, signal, 1, peer, BEELINE_NO_TIMEOUT));
    check_ok(beeline_wait(team, signal, BEELINE_GREATER_EQUAL, 1, peer, BEELINE_NO_TIMEOUT));
    BEELINE_CHECK_EQ(0, std::memcmp(inbox + 32, mine.data(), 256));
    check_ok(beeline_queue_flush(queues, 1, BEELINE_NO_TIMEOUT));
    check_ok(beeline_post_get(queues, 0, got.data(), inbox, 256, peer, BEELINE_NO_TIMEOUT));
    check_ok(beeline_post_signal(queues, 0, signal, 2, peer, BEELINE_NO_TIMEOUT));
    check_ok(beeline_queue_quiet(queues, 0, BEELINE_NO_TIMEOUT));
    BEELINE_CHECK(got == mine);
    check_ok(beeline_queues_destroy(queues));
  });
}

TEST(CInterface, Batches) {
  expect_passed(2, [](beeline_world*, beeline_team* team) {
    const int32_t peer = peer_of(team);
    auto* const inbox = allocate<uint64_t>(team, 8);
    uint64_t* const signal = allocate_signal(team);
    beeline_batch* batch = nullptr;
    check_refused(beeline_batch_create(team, 0, &batch), "argument capacity: 0 operations");
    check_ok(beeline_batch_create(team, 4, &batch));
    check_refused(beeline_batch_begin(batch, 2, 0), "argument peer: rank 2 of a team of 2");
    check_refused(beeline_batch_begin(batch, peer, 32), "argument queue: 32, where 0 to 31 are known");
    const std::array<uint64_t, 8> mine{1, 2, 3, 4, 5, 6, 7, 8};
    for (uint64_t round = 1; round <= 2; ++round) {
      check_ok(beeline_batch_begin(batch, peer, 1));
      for (std::size_t i = 0; i < mine.size(); ++i) check_ok(beeline_batch_put(batch, inbox + i, &mine[i], 8));
      check_refused(beeline_batch_put(batch, inbox, nullptr, 8), "argument source: a null pointer");
      check_ok(round == 1 ? beeline_batch_signal(batch, signal, 1) : beeline_batch_signal_add(batch, signal, 1));
      check_ok(beeline_batch_end(batch));
      check_ok(beeline_wait(team, signal, BEELINE_GREATER_EQUAL, round, peer, BEELINE_NO_TIMEOUT));
      BEELINE_CHECK_EQ(0, std::memcmp(inbox, mine.data(), sizeof mine));
      check_ok(beeline_barrier(team, BEELINE_NO_TIMEOUT));
    }
    check_ok(beeline_batch_destroy(batch));
    check_refused(beeline_batch_end(reinterpret_cast<beeline_batch*>(team)),
                  "argument batch: a handle of another type");
  });
}

TEST(CInterface, HybridTransfers) {
  expect_passed(2, [](beeline_world* world, beeline_team* team) {
    const int32_t peer = peer_of(team);
    auto* const inbox = allocate<uint64_t>(team, 4096);
    uint64_t* const signal = allocate_signal(team);
    beeline_hybrid_options options{};
    beeline_hybrid* hybrid = nullptr;
    check_refused(beeline_hybrid_create(team, &options, &hybrid), "argument options: struct_bytes is 0");
    options.struct_bytes = sizeof options;
    options.threshold_bytes = 1024, options.chunk_bytes = 4096, options.chunks = 2;
    check_ok(beeline_hybrid_create(team, &options, &hybrid));
    std::vector<uint64_t> mine(4096, 5), got(4096);
    void* there = nullptr;
    check_ok(beeline_address_on(team, inbox, peer, &there));
    int32_t staged = -1;
    check_ok(beeline_hybrid_is_staged(hybrid, there, mine.data(), 1024, &staged));
    BEELINE_CHECK_EQ(0, staged);
    check_ok(beeline_hybrid_is_staged(hybrid, there, mine.data(), 1025, &staged));
    BEELINE_CHECK_EQ(1, staged);
    check_refused(beeline_hybrid_put(hybrid, inbox, mine.data(), 8, 2, 0), "argument peer: rank 2 of a team of 2");
    check_ok(beeline_hybrid_put(hybrid, inbox, mine.data(), 8, peer, BEELINE_NO_TIMEOUT));
    check_ok(beeline_hybrid_put_on_stream(hybrid, inbox, mine.data(), 4096 * 8, peer, nullptr));
    check_ok(beeline_signal_on_stream(team, signal, 1, peer, nullptr));
    check_ok(beeline_wait(team, signal, BEELINE_GREATER_EQUAL, 1, peer, BEELINE_NO_TIMEOUT));
    BEELINE_CHECK_EQ(0, std::memcmp(inbox, mine.data(), 4096 * 8));
    check_ok(beeline_hybrid_copy(hybrid, got.data(), there, 4096 * 8, BEELINE_NO_TIMEOUT));
    BEELINE_CHECK(got == mine);
    check_ok(beeline_hybrid_copy_on_stream(hybrid, got.data() + 1, mine.data(), 8, beeline_default_stream(world)));
    check_ok(beeline_synchronize(beeline_default_stream(world), BEELINE_NO_TIMEOUT));
    options.chunk_bytes = 4097;
    check_refused(beeline_hybrid_set(hybrid, &options), "were made with buffers of 8192 bytes");
    check_ok(beeline_hybrid_set(hybrid, nullptr));
    check_ok(beeline_barrier(team, BEELINE_NO_TIMEOUT));
    check_ok(beeline_hybrid_destroy(hybrid));
  });
}

TEST(CInterface, BytesOfDifferentSizesAreGathered) {
  expect_passed(3, [](beeline_world* world, beeline_team* team) {
    const int32_t rank = beeline_team_rank(team), two[] = {0, 1};
    beeline_team* pair = nullptr;
    check_ok(beeline_team_create(world, two, rank < 2 ? 2 : 0, &pair));
    const char text[] = "abc";
    std::array<char, 12> all{};
    std::array<size_t, 3> sizes{9, 9, 9};
    const auto mine = static_cast<size_t>(rank + 1);
    check_refused(beeline_allgather_bytes(team, text, mine, all.data(), 2, sizes.data()),
                  "argument most_bytes: 2, and member 2 passes 3 bytes");
    check_refused(beeline_allgather_bytes(team, nullptr, mine, all.data(), 4, sizes.data()),
                  "argument mine: a null pointer");
    BEELINE_CHECK_EQ(size_t{9}, sizes[0]);
    check_ok(beeline_allgather_bytes(team, text, mine, all.data(), 4, sizes.data()));
    BEELINE_CHECK(sizes == (std::array<size_t, 3>{1, 2, 3}));
    BEELINE_CHECK(std::memcmp("a\0\0\0ab\0\0abc\0", all.data(), all.size()) == 0);
    if (pair == nullptr) return;
    check_ok(beeline_allgather_bytes(pair, text + rank, 1, all.data(), 1, sizes.data()));
    BEELINE_CHECK(all[0] == 'a' && all[1] == 'b' && sizes[1] == 1);
    check_refused(beeline_allgather_bytes(pair, all.data(), 121, all.data(), 1, sizes.data()), "at most 120");
    check_ok(beeline_team_destroy(pair));
  });
}

TEST(CInterface, AHandleOutlivesADestroyThatFails) {
  expect_passed(2, [](beeline_world* world, beeline_team* team) {
    const auto mine = static_cast<std::size_t>(beeline_team_rank(team));
    std::array<beeline_segment*, 2> segments{};
    for (beeline_segment*& segment : segments)
      check_ok(beeline_segment_create(world, BEELINE_MEMORY_HOST, 4096, &segment));
    check_refused(beeline_segment_destroy(segments[mine]), "ranks destroy different segments");
    alignas(16) std::array<std::array<int, 4>, 2> memory{};
    std::array<beeline_registered*, 2> registered{};
    for (std::size_t i = 0; i < 2; ++i)
      check_ok(beeline_register(world, memory[i].data(), sizeof memory[i], &registered[i]));
    check_refused(beeline_deregister(registered[mine]), "deregisters memory");
    beeline_part part{};
    part.struct_bytes = sizeof part;
    for (std::size_t i = 0; i < 2; ++i) {
      check_ok(beeline_segment_part(segments[i], 1, &part));
      BEELINE_CHECK_EQ(4096u, part.bytes);
      check_ok(beeline_registered_part(registered[i], 1, &part));
      BEELINE_CHECK_EQ(sizeof memory[i], part.bytes);
      check_ok(beeline_segment_destroy(segments[i]));
      check_ok(beeline_deregister(registered[i]));
    }
  });
}

/// The collectives of a team of two, on one element for each member; on a stream or blocking.
void check_collectives(beeline_collectives* made, beeline_team* team, beeline_stream* stream) {
  const int32_t rank = beeline_team_rank(team), peer = 1 - rank;
  beeline_call call{};
  call.struct_bytes = sizeof call, call.stream = stream;
  std::array<int32_t, 2> both{10 * rank, 10 * rank + 1}, got{};
  const auto expect = [&](beeline_status status, int32_t first, int32_t second) {
    check_ok(status);
    if (stream != nullptr) check_ok(beeline_synchronize(stream, BEELINE_NO_TIMEOUT));
    BEELINE_CHECK_EQ(first, got[0]);
    BEELINE_CHECK_EQ(second, got[1]);
    got = {};
  };
  const int32_t type = BEELINE_INT32;
  int32_t* const to = got.data();
  const int32_t* const from = both.data();
  expect(beeline_allreduce(made, to, from, 2, type, BEELINE_SUM, &call), 10, 12);
  expect(beeline_reduce(made, to, from, 2, type, BEELINE_MAXIMUM, 0, &call), rank == 0 ? 10 : 0, rank == 0 ? 11 : 0);
  expect(beeline_reduce_scatter(made, to, from, 1, type, BEELINE_SUM, &call), 10 + 2 * rank, 0);
  expect(beeline_broadcast(made, to, from, 2, type, 1, &call), 10, 11);
  expect(beeline_scatter(made, to, from, 1, type, 0, &call), rank, 0);
  expect(beeline_gather(made, to, from, 1, type, 0, &call), 0, rank == 0 ? 10 : 0);
  expect(beeline_allgather(made, to, from, 1, type, &call), 0, 10);
  expect(beeline_alltoall(made, to, from, 1, type, &call), rank, 10 + rank);
  const std::array<std::size_t, 2> ones{1, 1}, places{0, 1}, turned{1, 0};
  beeline_pieces pieces{};
  pieces.struct_bytes = sizeof pieces;
  pieces.send_counts = pieces.receive_counts = ones.data();
  pieces.send_offsets = places.data(), pieces.receive_offsets = turned.data();
  expect(beeline_alltoallv(made, to, from, &pieces, type, &call), 10 + rank, rank);
  check_ok(beeline_collective_barrier(made, stream));
  check_refused(beeline_reduce(made, to, from, 2, type, BEELINE_SUM, 2, &call), "argument root: rank 2 of a team of 2");
  check_refused(beeline_allreduce(made, to, from, 2, 9, BEELINE_SUM, &call), "argument type: 9, where 0 to 8");
  check_refused(beeline_allreduce(made, nullptr, from, 2, type, BEELINE_SUM, &call), "argument destination: a null");
  call.struct_bytes = 8;
  check_refused(beeline_allreduce(made, to, from, 2, type, BEELINE_SUM, &call), "argument call: struct_bytes is 8");
  static_cast<void>(peer);
}

TEST(CInterface, CollectivesBlockingAndOnStreams) {
  expect_passed(2, [](beeline_world* world, beeline_team* team) {
    beeline_collective_options options{};
    options.struct_bytes = sizeof options, options.engine_bytes = BEELINE_NO_ENGINE_BYTES;
    beeline_collectives* made = nullptr;
    check_ok(beeline_collectives_create(team, &options, &made));
    check_collectives(made, team, nullptr);
    check_collectives(made, team, beeline_default_stream(world));
    beeline_call call{};
    call.struct_bytes = sizeof call, call.algorithm = beeline_algorithm("two_shot");
    float value = 1;
    check_ok(beeline_allreduce(made, &value, &value, 1, BEELINE_FLOAT32, BEELINE_SUM, &call));
    BEELINE_CHECK_EQ(2.0F, value);
    check_ok(beeline_collectives_destroy(made));
  });
}

TEST(CInterface, Messages) {
  expect_passed(2, [](beeline_world* world, beeline_team* team) {
    const int32_t rank = beeline_team_rank(team), peer = peer_of(team);
    beeline_message_options options{};
    options.struct_bytes = sizeof options, options.eager_bytes = 1024;
    beeline_messages* messages = nullptr;
    check_ok(beeline_messages_create(team, &options, &messages));
    std::vector<int32_t> mine(1000, rank), got(1000, -1);
    beeline_message_call call{};
    call.struct_bytes = sizeof call, call.tag = 7;
    if (rank == 0) {
      check_ok(beeline_send(messages, mine.data(), 1000, BEELINE_INT32, 1, &call));
    } else {
      check_ok(beeline_receive(messages, got.data(), 1000, BEELINE_INT32, 0, &call));
      BEELINE_CHECK_EQ(0, got[999]);
    }
    beeline_message sent{}, received{};
    sent.struct_bytes = received.struct_bytes = sizeof sent;
    sent.peer = received.peer = peer, sent.count = received.count = 8;
    sent.vector = mine.data(), received.vector = got.data();
    check_ok(beeline_send_receive(messages, &sent, &received, BEELINE_INT32, nullptr));
    BEELINE_CHECK_EQ(peer, got[7]);
    BEELINE_CHECK_EQ(static_cast<beeline_status>(BEELINE_IN_PROGRESS), beeline_probe(messages, peer));
    check_ok(beeline_barrier(team, BEELINE_NO_TIMEOUT));
    call.stream = beeline_default_stream(world);
    check_ok(beeline_send(messages, mine.data(), 4, BEELINE_INT32, peer, &call));
    check_ok(beeline_receive(messages, got.data(), 4, BEELINE_INT32, peer, &call));
    check_ok(beeline_synchronize(call.stream, BEELINE_NO_TIMEOUT));
    check_refused(beeline_send(messages, mine.data(), 4, BEELINE_INT32, 2, nullptr), "peer: rank 2 of a team of 2");
    check_refused(beeline_receive(messages, nullptr, 4, BEELINE_INT32, 0, nullptr), "destination: a null pointer");
    check_refused(beeline_send(messages, mine.data(), 4, 9, peer, nullptr), "argument type: 9, where 0 to 8");
    call.tag = BEELINE_MOST_MESSAGE_TAG + 1;
    check_refused(beeline_send(messages, mine.data(), 4, BEELINE_INT32, peer, &call), "tag");
    check_ok(beeline_messages_destroy(messages));
  });
}

TEST(CInterface, DistributedArrays) {
  expect_passed(2, [](beeline_world* world, beeline_team* team) {
    const int32_t rank = beeline_team_rank(team);
    beeline_array* array = nullptr;
    check_refused(beeline_array_create(world, 4, 0, 0, BEELINE_MEMORY_HOST, &array), "argument element_bytes: 0 bytes");
    check_ok(beeline_array_create(world, 2000, 24, 100, BEELINE_MEMORY_HOST, &array));
    auto* const data = static_cast<std::byte*>(beeline_array_data(array));
    beeline_chunk chunk{};
    chunk.struct_bytes = sizeof chunk;
    std::array<std::size_t, 2> owned{};
    for (std::size_t i = 0; i < 2000; i = chunk.behind) {
      check_ok(beeline_array_chunk(array, i, &chunk));
      BEELINE_CHECK_EQ(i, chunk.first);
      owned.at(static_cast<std::size_t>(chunk.owner)) += chunk.behind - chunk.first;
      if (chunk.owner == rank) std::memset(data + 24 * i, 1 + rank, 24 * (chunk.behind - i));
    }
    BEELINE_CHECK_EQ(2000u, owned[0] + owned[1]);
    BEELINE_CHECK(owned[0] > 0 && owned[1] > 0);
    check_ok(beeline_barrier(team, BEELINE_NO_TIMEOUT));
    check_ok(beeline_array_chunk(array, 1999, &chunk));
    BEELINE_CHECK_EQ(2000u, chunk.behind);
    std::array<std::byte, 24> got{};
    check_ok(beeline_copy(world, got.data(), data + 24 * std::size_t{1999}, sizeof got));
    BEELINE_CHECK_EQ(1 + chunk.owner, static_cast<int32_t>(got[23]));
    check_refused(beeline_array_chunk(array, 2000, &chunk), "argument index: 2000 of 2000 elements");
    check_ok(beeline_array_destroy(array));
  });
}

TEST(CInterface, Triggers) {
  expect_passed(2, [](beeline_world*, beeline_team* team) {
    const int32_t rank = beeline_team_rank(team), peer = peer_of(team);
    auto* const inbox = allocate<uint64_t>(team, 8);
    uint64_t* const signal = allocate_signal(team);
    beeline_triggers* triggers = nullptr;
    check_ok(beeline_triggers_create(team, nullptr, &triggers));
    const std::array<uint64_t, 2> mine{10u + static_cast<uint64_t>(rank), 20};
    beeline_condition when{};
    when.struct_bytes = sizeof when, when.tag = 3, when.threshold = 2, when.chains = 1, when.then = 4;
    beeline_armed put{}, chained{}, never{};
    check_ok(beeline_arm_put(triggers, &when, inbox, mine.data(), 16, signal, 1, peer, &put));
    when.tag = 4, when.threshold = 1, when.chains = 0;
    check_ok(beeline_arm_signal(triggers, &when, signal, 2, peer, &chained));
    when.tag = 5;
    check_ok(beeline_arm_get(triggers, &when, inbox + 4, inbox, 16, nullptr, 0, peer, &never));
    check_ok(beeline_trigger(triggers, 3, 1));
    BEELINE_CHECK_EQ(static_cast<beeline_status>(BEELINE_TIMEOUT), beeline_armed_wait(triggers, &put, 1'000'000));
    check_ok(beeline_trigger(triggers, 3, 1));
    check_ok(beeline_armed_wait(triggers, &chained, BEELINE_NO_TIMEOUT));
    check_ok(beeline_wait(team, signal, BEELINE_GREATER_EQUAL, 2, peer, BEELINE_NO_TIMEOUT));
    BEELINE_CHECK_EQ(10u + static_cast<uint64_t>(peer), inbox[0]);
    uint64_t reached = 0;
    check_ok(beeline_trigger_count(triggers, 3, &reached));
    BEELINE_CHECK_EQ(2u, reached);
    check_ok(beeline_armed_cancel(triggers, &never));
    check_refused(beeline_trigger(triggers, 4096, 1), "4096");
    check_refused(beeline_arm_signal(triggers, &when, signal, 1, 2, nullptr), "argument peer: rank 2 of a team of 2");
    check_refused(beeline_armed_wait(triggers, nullptr, 0), "argument armed: a null pointer");
    check_ok(beeline_triggers_destroy(triggers));
  });
}

TEST(CInterface, AWorldIsMadeFromValuesAndClosed) {
  Settings config(1);
  config.set("THREADS", "0");
  beeline_world* world = nullptr;
  check_ok(beeline_world_create(config.get(), &world));
  EXPECT_EQ(1, beeline_team_size(beeline_world_team(world)));
  beeline_stream* stream = nullptr;
  check_ok(beeline_stream_create(world, 0, &stream));
  check_ok(beeline_world_close(world));
  check_ok(beeline_stream_destroy(stream));  // a handle may outlive its world
}

TEST(CInterface, TheRanksThatAreLeftGoOn) {
  EXPECT_EQ(1, run_ranks(Settings(3), [](beeline_world* world, beeline_team* team) {
              if (beeline_team_rank(team) == 2) return check_ok(beeline_world_abort(world, "enough of this"));
              BEELINE_CHECK(beeline_barrier(team, BEELINE_NO_TIMEOUT) != BEELINE_OK);
              BEELINE_CHECK_CONTAINS(beeline_last_error(), "enough of this");
              beeline_team* left = nullptr;
              check_ok(beeline_world_survivors(world, &left));
              BEELINE_CHECK_EQ(2, beeline_team_size(left));
              check_ok(beeline_barrier(left, BEELINE_NO_TIMEOUT));
              beeline_health health{};
              health.struct_bytes = sizeof health;
              check_ok(beeline_world_health(world, 2, &health));
              BEELINE_CHECK_EQ(static_cast<int32_t>(BEELINE_FAILED), health.state);
              check_ok(beeline_team_destroy(left));
            }));
}

TEST(CInterface, ASecondThreadInACollectiveFunctionIsRefused) {
  expect_passed(2, [](beeline_world*, beeline_team* team) {
    auto* const signal = allocate_signal(team);
    if (beeline_team_rank(team) == 1) {
      check_ok(beeline_wait(team, signal, BEELINE_EQUAL, 1, 0, BEELINE_NO_TIMEOUT));
      return check_ok(beeline_barrier(team, BEELINE_NO_TIMEOUT));
    }
    std::thread first([team] {
      auto status = beeline_barrier(team, BEELINE_NO_TIMEOUT);
      // A poll below may be in its call at this time.
      while (status == BEELINE_INVALID_ARGUMENT) status = beeline_barrier(team, BEELINE_NO_TIMEOUT);
      check_ok(status);
    });
    // Refused while `first` is in its barrier, which waits for rank 1; until then, polls start no other barrier.
    void* memory = nullptr;
    while (beeline_allocate(team, 64, 9, &memory) == BEELINE_INVALID_ARGUMENT &&
           std::strstr(beeline_last_error(), "another thread is in beeline_barrier") == nullptr)
      std::this_thread::yield();
    check_ok(beeline_signal(team, signal, 1, 1, 0));
    first.join();
  });
}

}  // namespace

}  // namespace beeline_test::c_interface_test
