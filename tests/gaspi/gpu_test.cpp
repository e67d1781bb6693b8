// SPDX-License-Identifier: Apache-2.0
// The GPU extension: segments in GPU memory, hybrid writes, memory of the program, the endpoint of kernels. Without a
// GPU: the errors, and everything that host ranks share with GPU ranks.
#include <GASPI_Ext.h>
#include <GASPI_GPU.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "beeline/gaspi/device.hpp"
#include "tests/gaspi/gaspi_ranks.hpp"

namespace beeline_test::gaspi_gpu_test {

namespace {

using beeline::Status;
using beeline::Thread;
using beeline::gaspi::Endpoint;

constexpr gaspi_segment_id_t host = 0, other = 1;

Endpoint endpoint() {
  Endpoint made{};
  GASPI_OK(gaspi_gpu_endpoint(&made, sizeof made));
  return made;
}

TEST(GaspiGpu, WithoutAGpu) {
  expect_gaspi({.ranks = 1}, [](int) {
    int number = 0;
    gaspi_number_t count = 0;
    GASPI_REFUSED(GASPI_ERROR, "runs on a CPU", gaspi_gpu_init());
    GASPI_REFUSED(GASPI_ERROR, "runs on a CPU", gaspi_init_GPUs());
    GASPI_REFUSED(GASPI_ERROR, "before gaspi_gpu_init", gaspi_gpu_ids(&number));
    GASPI_REFUSED(GASPI_ERROR, "before gaspi_gpu_init", gaspi_GPU_ids(&number));
    GASPI_REFUSED(GASPI_ERROR, "before gaspi_gpu_init", gaspi_gpu_number(&count));
    GASPI_REFUSED(GASPI_ERROR, "before gaspi_gpu_init", gaspi_number_of_GPUs(&number));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "gpu_ids", gaspi_gpu_ids(nullptr));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "num_gpus", gaspi_gpu_number(nullptr));
    GASPI_REFUSED(GASPI_ERR_DEVICE, "no GPU", gaspi_segment_alloc(host, 64, GASPI_MEM_GPU));
    GASPI_REFUSED(GASPI_ERR_DEVICE, "no GPU", gaspi_segment_alloc(host, 64, GASPI_MEM_GPU_FLAGS));
    GASPI_REFUSED(GASPI_ERR_DEVICE, "no GPU", gaspi_map_seg(host, &number, sizeof number, 0));
    GASPI_REFUSED(GASPI_ERR_DEVICE, "no GPU",
                  gaspi_map_create(host, &number, sizeof number, GASPI_GROUP_ALL, GASPI_BLOCK, 0));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "pointer", gaspi_map_seg(host, nullptr, 64, 0));
    GASPI_REFUSED(GASPI_ERR_DEVICE, "no rank has a GPU", gaspi_gpu_hybrid_set(4096, 65536));
    Endpoint made{};
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "endpoint", gaspi_gpu_endpoint(nullptr, sizeof made));
    GASPI_REFUSED(GASPI_ERR_INV_SIZE, "another version", gaspi_gpu_endpoint(&made, sizeof made - 8));
    gaspi_number_t segments = 7;
    GASPI_OK(gaspi_segment_num(&segments));
    BEELINE_CHECK_EQ(0u, segments);
  });
}

TEST(GaspiGpu, BeforeInitialization) {
  Endpoint made{};
  GASPI_EXPECT(GASPI_ERR_NOINIT, gaspi_gpu_init());
  GASPI_EXPECT(GASPI_ERR_NOINIT, gaspi_gpu_write(0, 0, 0, 0, 0, 8, 0, GASPI_BLOCK));
  GASPI_EXPECT(GASPI_ERR_NOINIT, gaspi_gpu_hybrid_set(0, 0));
  GASPI_EXPECT(GASPI_ERR_NOINIT, gaspi_map_seg(0, &made, 64, 0));
  GASPI_EXPECT(GASPI_ERR_NOINIT, gaspi_gpu_endpoint(&made, sizeof made));
}

/// `gaspi_gpu_write` and its notification on ranks without a GPU, inside a node and between nodes.
class GaspiGpuNodes : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Nodes, GaspiGpuNodes, ::testing::Values(1, 2));

TEST_P(GaspiGpuNodes, WritesBetweenHostSegments) {
  expect_gaspi({.ranks = 2, .nodes = GetParam()}, [](int rank) {
    constexpr std::size_t count = 100'000;
    auto* const mine = make_segment(host, 2 * count);
    std::iota(mine, mine + count, 1000u * static_cast<unsigned>(rank));
    const auto peer = static_cast<gaspi_rank_t>(1 - rank);
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    GASPI_OK(gaspi_gpu_write(host, 0, peer, host, count * 8, count * 4, 0, GASPI_BLOCK));
    GASPI_OK(gaspi_gpu_write_notify(host, count * 4, peer, host, count * 12, count * 4, 3, 9, 0, GASPI_BLOCK));
    GASPI_OK(gaspi_notify(host, peer, 4, 5, 0, GASPI_BLOCK));
    BEELINE_CHECK_EQ(5u, take_notification(host, 4));  // after everything before
    BEELINE_CHECK_EQ(9u, take_notification(host, 3));
    for (std::size_t i = 0; i < count; ++i) BEELINE_CHECK_EQ(1000u * peer + i, mine[count + i]);
    GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_REM_OFF, "of rank",
                  gaspi_gpu_write(host, 0, peer, host, count * 16, 8, 0, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_LOC_OFF, "", gaspi_gpu_write(host, count * 16, peer, host, 0, 8, 0, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_NOTIF_VAL, "", gaspi_gpu_write_notify(host, 0, peer, host, 0, 8, 3, 0, 0, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_QUEUE, "", gaspi_gpu_write(host, 0, peer, host, 0, 8, 99, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_RANK, "", gaspi_gpu_write(host, 0, 2, host, 0, 8, 0, GASPI_BLOCK));
  });
}

/// The device library on a CPU thread, over the segments of this process, meets the C functions of the other rank.
TEST_P(GaspiGpuNodes, TheEndpointOfHostRanks) {
  expect_gaspi({.ranks = 2, .nodes = GetParam()}, [](int rank) {
    auto* const mine = make_segment(host, 64);
    const Endpoint before = endpoint();
    auto* const late = make_segment(other, 32);
    const Endpoint made = endpoint();
    const auto peer = static_cast<std::uint32_t>(1 - rank);
    mine[0] = 70 + static_cast<unsigned>(rank);
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    BEELINE_CHECK(before.table.queues == made.table.queues && before.context.rank == static_cast<std::uint32_t>(rank));
    BEELINE_CHECK(gpu_write_notify(Thread{}, made, {host, 0}, peer, {other, 8}, 8, {11, 3}, 1) == Status::ok);
    BEELINE_CHECK_EQ(3u, take_notification(other, 11));
    BEELINE_CHECK_EQ(71u - static_cast<unsigned>(rank), late[1]);
    GASPI_OK(gaspi_notify(other, static_cast<gaspi_rank_t>(peer), 12, 8, 0, GASPI_BLOCK));
    std::uint32_t id = 0, value = 0;
    BEELINE_CHECK(notify_waitsome(Thread{}, made, other, 0, 65536, id) == Status::ok);
    BEELINE_CHECK(beeline::gaspi::notify_reset(Thread{}, made, other, id, value) == Status::ok);
    BEELINE_CHECK(id == 12 && value == 8);
    BEELINE_CHECK(beeline::gaspi::wait(Thread{}, made, 1) == Status::ok);
    BEELINE_CHECK(gpu_write(Thread{}, made, {host, 0}, peer, {other, 256}, 8, 1) == Status::invalid_argument);
    BEELINE_CHECK(gpu_write(Thread{}, made, {host, 0}, peer, {9, 0}, 8, 1) == Status::invalid_argument);
    BEELINE_CHECK(wait_for_notification(Thread{}, made, other, 5, {1'000'000}) == Status::timeout);
  });
}

/// Ranks with GPUs: `devices` is BEELINE_DEVICE of each rank.
struct GpuRanks {
  const char* devices;
  int ranks, nodes, gpus;
};
class GaspiGpus : public ::testing::TestWithParam<GpuRanks> {
 public:
  static void run(const std::function<void(int rank)>& body) {
    const GpuRanks& how = GetParam();
    std::string why;
    if (gpus_here(&why) < how.gpus) GTEST_SKIP() << how.gpus << " GPUs are needed: " << why;
    expect_all_passed(run_processes_for_gaspi({.ranks = how.ranks, .nodes = how.nodes}, [&](int rank) {
      setenv("BEELINE_DEVICE", how.devices, 1);
      GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
      body(rank);
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
    }));
  }
  /// Whether a rank has a GPU.
  static bool has_gpu(int rank) {
    std::string list = GetParam().devices;
    for (int i = 0; i < rank; ++i) list.erase(0, list.find(',') + 1);
    return list.starts_with("cuda");
  }
  /// Makes segments of `count` words: 2 and 3, sources in host and in GPU memory, and 4 and 5, destinations likewise.
  static void make_ends(int rank, std::size_t count) {
    const gaspi_alloc_t on_gpu = has_gpu(rank) ? GASPI_MEM_GPU | GASPI_MEM_INITIALIZED : GASPI_MEM_INITIALIZED;
    for (gaspi_segment_id_t id = 2; id < 6; ++id)
      GASPI_OK(gaspi_segment_create(id, count * 8, GASPI_GROUP_ALL, GASPI_BLOCK,
                                    id % 2 == 0 ? gaspi_alloc_t{GASPI_MEM_INITIALIZED} : on_gpu));
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, GaspiGpus,
                         ::testing::Values(GpuRanks{"cuda:0", 1, 1, 1}, GpuRanks{"cuda:0,cpu", 2, 1, 1},
                                           GpuRanks{"cuda:0,cuda:1", 2, 1, 2}, GpuRanks{"cuda:0,cuda:1", 2, 2, 2}));

/// Fills a segment of any kind through a host segment, and reads it back.
void fill(gaspi_segment_id_t segment, gaspi_rank_t rank, std::uint64_t* staging, std::size_t count, std::uint64_t key) {
  std::iota(staging, staging + count, key);
  GASPI_OK(gaspi_write(host, 0, rank, segment, 0, count * 8, 0, GASPI_BLOCK));
  GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
}
void expect_values(gaspi_segment_id_t segment, gaspi_rank_t rank, std::uint64_t* staging, std::size_t count,
                   std::uint64_t key) {
  std::fill(staging, staging + count, 0);
  GASPI_OK(gaspi_read(host, 0, rank, segment, 0, count * 8, 0, GASPI_BLOCK));
  GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
  for (std::size_t i = 0; i < count; ++i) BEELINE_CHECK_EQ(key + i, staging[i]);
}

/// gaspi_write and gaspi_gpu_write from host or GPU memory to host or GPU memory of the next rank, with notifications.
TEST_P(GaspiGpus, FourDirections) {
  run([](int rank) {
    constexpr std::size_t count = std::size_t{1} << 20;
    const int ranks = GetParam().ranks;
    const auto next = static_cast<gaspi_rank_t>((rank + 1) % ranks), me = static_cast<gaspi_rank_t>(rank);
    auto* const staging = make_segment(host, count);
    make_ends(rank, count);
    std::uint64_t round = 0;
    for (const std::size_t words : {std::size_t{1}, std::size_t{513}, count})
      for (const bool hybrid : {false, true})
        for (gaspi_segment_id_t from = 2; from < 4; ++from)
          for (gaspi_segment_id_t to = 4; to < 6; ++to) {
            ++round;
            fill(from, me, staging, words, 1000 * round + me);
            GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
            const auto write = hybrid ? gaspi_gpu_write_notify : gaspi_write_notify;
            GASPI_OK(
                write(from, 0, next, to, 0, words * 8, 17, static_cast<gaspi_notification_t>(round), 1, GASPI_BLOCK));
            BEELINE_CHECK_EQ(round, take_notification(to, 17));
            GASPI_OK(gaspi_wait(1, GASPI_BLOCK));
            expect_values(to, me, staging, words, 1000 * round + static_cast<unsigned>((rank + ranks - 1) % ranks));
            GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
          }
  });
}

/// gaspi_read_notify from host or GPU memory of the next rank to host or GPU memory, and passive messages to it.
TEST_P(GaspiGpus, ReadsAndMessages) {
  run([](int rank) {
    constexpr std::size_t count = 70'001, message = 100;
    const int ranks = GetParam().ranks;
    const auto next = static_cast<gaspi_rank_t>((rank + 1) % ranks), me = static_cast<gaspi_rank_t>(rank);
    auto* const staging = make_segment(host, count);
    make_ends(rank, count);
    std::uint64_t round = 0;
    for (gaspi_segment_id_t from = 2; from < 4; ++from)
      for (gaspi_segment_id_t to = 4; to < 6; ++to) {
        ++round;
        fill(from, me, staging, count, 1000 * round + me);
        GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
        GASPI_OK(gaspi_read_notify(to, 0, next, from, 0, count * 8, 17, 1, GASPI_BLOCK));
        BEELINE_CHECK_EQ(1u, take_notification(to, 17));
        GASPI_OK(gaspi_wait(1, GASPI_BLOCK));
        expect_values(to, me, staging, count, 1000 * round + next);
        gaspi_rank_t sender = 99;
        std::thread sends([&] { GASPI_OK(gaspi_passive_send(from, 8, next, message * 8, GASPI_BLOCK)); });
        GASPI_OK(gaspi_passive_receive(to, 0, &sender, message * 8, GASPI_BLOCK));
        sends.join();
        BEELINE_CHECK_EQ((rank + ranks - 1) % ranks, static_cast<int>(sender));
        expect_values(to, me, staging, message, 1000 * round + sender + 1);
        GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      }
  });
}

/// Threshold and chunk change at run time; each way delivers the data.
TEST_P(GaspiGpus, ThresholdAndChunk) {
  run([](int rank) {
    constexpr std::size_t count = 300'001;
    const auto next = static_cast<gaspi_rank_t>((rank + 1) % GetParam().ranks), me = static_cast<gaspi_rank_t>(rank);
    auto* const staging = make_segment(host, count);
    const gaspi_alloc_t kind = has_gpu(rank) ? GASPI_MEM_GPU : GASPI_MEM_DEFAULT;
    for (gaspi_segment_id_t id = 2; id < 4; ++id)
      GASPI_OK(gaspi_segment_create(id, count * 8, GASPI_GROUP_ALL, GASPI_BLOCK, kind));
    std::uint64_t round = 0;
    for (const auto& [threshold, chunk] : {std::pair{1ul, 65536ul}, {std::size_t{4} << 20, 65536ul}, {1ul, 4096ul}}) {
      GASPI_OK(gaspi_gpu_hybrid_set(threshold, chunk));
      fill(2, me, staging, count, 1000 * ++round + me);
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      GASPI_OK(gaspi_gpu_write_notify(2, 0, next, 3, 0, count * 8, 1, 1, 2, GASPI_BLOCK));
      BEELINE_CHECK_EQ(1u, take_notification(3, 1));
      GASPI_OK(gaspi_wait(2, GASPI_BLOCK));
      const int before = (rank + GetParam().ranks - 1) % GetParam().ranks;
      expect_values(3, me, staging, count, 1000 * round + static_cast<unsigned>(before));
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    }
    GASPI_REFUSED(GASPI_ERR_INV_SIZE, "", gaspi_gpu_hybrid_set(1, std::size_t{1} << 40));
    GASPI_OK(gaspi_gpu_hybrid_set(0, 0));
  });
}

/// All-reduces from and to segments of any kind: host memory of some ranks, GPU memory of others.
TEST_P(GaspiGpus, AllReducesOfGpuMemory) {
  run([](int rank) {
    constexpr std::size_t count = 255;
    const auto me = static_cast<gaspi_rank_t>(rank);
    auto* const staging = make_segment(host, count);
    const gaspi_alloc_t kind = has_gpu(rank) ? GASPI_MEM_GPU : GASPI_MEM_DEFAULT;
    for (gaspi_segment_id_t id = 2; id < 4; ++id)
      GASPI_OK(gaspi_segment_create(id, count * 8, GASPI_GROUP_ALL, GASPI_BLOCK, kind));
    auto *const from = segment_memory(2), *const to = segment_memory(3);
    const auto ranks = static_cast<std::uint64_t>(GetParam().ranks);
    fill(2, me, staging, count, 1000 * me);
    const auto sum = [&](std::uint64_t* source, std::uint64_t* destination) {
      GASPI_OK(
          gaspi_allreduce(source, destination, count, GASPI_OP_SUM, GASPI_TYPE_ULONG, GASPI_GROUP_ALL, GASPI_BLOCK));
    };
    const auto check_sum = [&](std::uint64_t i, std::uint64_t observed) {
      BEELINE_CHECK_EQ(1000 * ranks * (ranks - 1) / 2 + ranks * i, observed);
    };
    sum(from, to);
    std::fill(staging, staging + count, 0);
    GASPI_OK(gaspi_read(host, 0, me, 3, 0, count * 8, 0, GASPI_BLOCK));
    GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
    for (std::size_t i = 0; i < count; ++i) check_sum(i, staging[i]);
    sum(from, staging);
    for (std::size_t i = 0; i < count; ++i) check_sum(i, staging[i]);
  });
}

TEST_P(GaspiGpus, NumbersOfGpus) {
  run([](int rank) {
    if (!has_gpu(rank)) return;
    int id = -1;
    gaspi_number_t count = 0;
    GASPI_REFUSED(GASPI_ERROR, "before gaspi_gpu_init", gaspi_gpu_ids(&id));
    GASPI_OK(gaspi_gpu_init());
    GASPI_OK(gaspi_init_GPUs());
    GASPI_OK(gaspi_gpu_number(&count));
    GASPI_OK(gaspi_gpu_ids(&id));
    BEELINE_CHECK(count == 1 && id >= 0);
  });
}

}  // namespace

}  // namespace beeline_test::gaspi_gpu_test
