// SPDX-License-Identifier: Apache-2.0
// Bad arguments that several functions have, each tried with all of them: transfers, lists, outputs.
#include <GASPI.h>
#include <GASPI_Ext.h>
#include <GASPI_GPU.h>
#include <GASPI_Threads.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "tests/gaspi/gaspi_ranks.hpp"

namespace beeline_test::gaspi_bad_input_test {

namespace {

/// Expects `call` to return `expected`, and to write one line with its name and the reason.
void expect_line(const char* name, gaspi_return_t expected, const std::string& reason,
                 const std::function<gaspi_return_t()>& call) {
  gaspi_return_t observed = GASPI_SUCCESS;
  const std::string log = logged_by([&] { observed = call(); });
  check_equal(static_cast<int>(expected), static_cast<int>(observed), join(name, " (logged: ", log, ")"), __FILE__,
              __LINE__);
  BEELINE_CHECK_CONTAINS(log, join(name, ": "));
  BEELINE_CHECK_CONTAINS(log, reason);
  check_equal(1, static_cast<int>(std::count(log.begin(), log.end(), '\n')), log.c_str(), __FILE__, __LINE__);
}

/// Arguments of a transfer; valid unless changed.
struct Arguments {
  gaspi_rank_t rank;
  gaspi_segment_id_t local = 0, remote = 0;
  gaspi_offset_t from = 0, to = 64;  ///< offsets of the local and of the remote end
  gaspi_size_t size = 8;
  gaspi_notification_id_t id = 5;
  gaspi_notification_t value = 1;
  gaspi_queue_id_t queue = 0;
};

/// A function with these arguments. Lists have two elements, of which the second has the arguments.
struct Transfer {
  const char* name;
  bool has_data, has_id, has_value;
  gaspi_return_t (*call)(const Arguments&);
};

/// The arrays of a list.
struct Arrays {
  explicit Arrays(const Arguments& of)
      : local{0, of.local}, remote{0, of.remote}, from{0, of.from}, to{64, of.to}, size{8, of.size} {}
  std::array<gaspi_segment_id_t, 2> local, remote;
  std::array<gaspi_offset_t, 2> from, to;
  std::array<gaspi_size_t, 2> size;
};

#define LIST(of) 2, of.local.data(), of.from.data(), a.rank, of.remote.data(), of.to.data(), of.size.data()
#define ONE a.local, a.from, a.rank, a.remote, a.to, a.size

const Transfer transfers[] = {
    {"gaspi_write", true, false, false, [](const Arguments& a) { return gaspi_write(ONE, a.queue, GASPI_TEST); }},
    {"gaspi_read", true, false, false, [](const Arguments& a) { return gaspi_read(ONE, a.queue, GASPI_TEST); }},
    {"gaspi_write_notify", true, true, true,
     [](const Arguments& a) { return gaspi_write_notify(ONE, a.id, a.value, a.queue, GASPI_TEST); }},
    {"gaspi_read_notify", true, true, false,
     [](const Arguments& a) { return gaspi_read_notify(ONE, a.id, a.queue, GASPI_TEST); }},
    {"gaspi_gpu_write", true, false, false,
     [](const Arguments& a) { return gaspi_gpu_write(ONE, a.queue, GASPI_TEST); }},
    {"gaspi_gpu_write_notify", true, true, true,
     [](const Arguments& a) { return gaspi_gpu_write_notify(ONE, a.id, a.value, a.queue, GASPI_TEST); }},
    {"gaspi_notify", false, true, true,
     [](const Arguments& a) { return gaspi_notify(a.remote, a.rank, a.id, a.value, a.queue, GASPI_TEST); }},
    {"gaspi_write_list", true, false, false,
     [](const Arguments& a) {
       const Arrays list(a);
       return gaspi_write_list(LIST(list), a.queue, GASPI_TEST);
     }},
    {"gaspi_write_list_notify", true, true, true,
     [](const Arguments& a) {
       const Arrays list(a);
       return gaspi_write_list_notify(LIST(list), a.remote, a.id, a.value, a.queue, GASPI_TEST);
     }},
    {"gaspi_read_list", true, false, false,
     [](const Arguments& a) {
       const Arrays list(a);
       return gaspi_read_list(LIST(list), a.queue, GASPI_TEST);
     }},
    {"gaspi_read_list_notify", true, true, false,
     [](const Arguments& a) {
       const Arrays list(a);
       return gaspi_read_list_notify(LIST(list), a.local, a.id, a.queue, GASPI_TEST);
     }},
};

#undef LIST
#undef ONE

/// One wrong argument.
struct Wrong {
  gaspi_return_t expected;
  const char* reason;
  bool Transfer::*concerns;  ///< which functions have the argument; nullptr: all
  void (*spoil)(Arguments&);
};

constexpr gaspi_offset_t last_offset = ~gaspi_offset_t{0};
constexpr gaspi_notification_id_t most_notifications = 100;  // as configured
constexpr gaspi_segment_id_t of_the_peer = 1;                // registered with no other rank

const Wrong wrongs[] = {
    {GASPI_ERR_INV_SEG, "has no segment 9", &Transfer::has_data, [](Arguments& a) { a.local = 9; }},
    {GASPI_ERR_INV_SEG, "has no segment 255", &Transfer::has_data, [](Arguments& a) { a.local = 255; }},
    {GASPI_ERR_INV_SEG, "has no segment 9", nullptr, [](Arguments& a) { a.remote = 9; }},
    {GASPI_ERR_INV_SEG, "segment 1 of rank", nullptr, [](Arguments& a) { a.remote = of_the_peer; }},
    {GASPI_ERR_INV_RANK, "there is no rank 2: ranks are 0 to 1", nullptr, [](Arguments& a) { a.rank = 2; }},
    {GASPI_ERR_INV_RANK, "there is no rank 65535", nullptr, [](Arguments& a) { a.rank = 65'535; }},
    {GASPI_ERR_INV_LOC_OFF, "offset 121", &Transfer::has_data, [](Arguments& a) { a.from = 121; }},
    {GASPI_ERR_INV_LOC_OFF, "offset 128", &Transfer::has_data, [](Arguments& a) { a.from = 128; }},
    {GASPI_ERR_INV_LOC_OFF, "in the local segment 0", &Transfer::has_data,
     [](Arguments& a) { a.from = last_offset - 3; }},
    {GASPI_ERR_INV_LOC_OFF, "129 bytes", &Transfer::has_data, [](Arguments& a) { a.size = 129; }},
    {GASPI_ERR_INV_REM_OFF, "offset 121", &Transfer::has_data, [](Arguments& a) { a.to = 121; }},
    {GASPI_ERR_INV_REM_OFF, "in segment 0 of rank", &Transfer::has_data, [](Arguments& a) { a.to = last_offset - 7; }},
    {GASPI_ERR_INV_COMMSIZE, "0 bytes", &Transfer::has_data, [](Arguments& a) { a.size = 0; }},
    {GASPI_ERR_INV_COMMSIZE, "where 1 to", &Transfer::has_data, [](Arguments& a) { a.size = last_offset; }},
    {GASPI_ERR_INV_QUEUE, "queue 100", nullptr, [](Arguments& a) { a.queue = 100; }},
    {GASPI_ERR_INV_NOTIF_ID, "notifications 100", &Transfer::has_id, [](Arguments& a) { a.id = most_notifications; }},
    {GASPI_ERR_INV_NOTIF_VAL, "other than 0", &Transfer::has_value, [](Arguments& a) { a.value = 0; }},
};

void try_all(gaspi_rank_t peer) {
  for (const Transfer& transfer : transfers) {
    const auto refused = [&](gaspi_return_t expected, const char* reason, const Arguments& arguments) {
      expect_line(transfer.name, expected, reason, [&] { return transfer.call(arguments); });
    };
    for (const Wrong& wrong : wrongs) {
      if (wrong.concerns != nullptr && !(transfer.*wrong.concerns)) continue;
      Arguments arguments{peer};
      wrong.spoil(arguments);
      refused(wrong.expected, wrong.reason, arguments);
    }
    GASPI_OK(gaspi_disconnect(peer, GASPI_BLOCK));
    refused(GASPI_ERROR, "is not connected", {peer});
    GASPI_OK(gaspi_connect(peer, GASPI_BLOCK));
    Arguments full{peer};
    full.queue = 1;
    GASPI_EXPECT(GASPI_QUEUE_FULL, transfer.call(full));
  }
}

/// Each bad argument of each function that posts requests, a rank that is not connected, and a full queue. Nothing of
/// it reaches the memory of either rank, nor a notification.
TEST(GaspiBadInput, EveryTransferChecksEveryArgument) {
  for (const int nodes : {1, 2}) {
    expect_all_passed(run_processes_for_gaspi({.nodes = nodes}, [](int rank) {
      gaspi_config_t config;
      GASPI_OK(gaspi_config_get(&config));
      config.queue_size_max = 4, config.notification_num = most_notifications;
      GASPI_OK(gaspi_config_set(config));
      GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
      std::uint64_t* const memory = make_segment(0, 16);
      std::fill(memory, memory + 16, 0xABCD);
      GASPI_OK(gaspi_segment_alloc(of_the_peer, 128, GASPI_MEM_INITIALIZED));
      make_segment(2, 16);
      const auto peer = static_cast<gaspi_rank_t>(1 - rank);
      for (int i = 0; i < 4; ++i) GASPI_OK(gaspi_write(2, 0, peer, 2, 64, 8, 1, GASPI_BLOCK));
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      try_all(peer);
      GASPI_OK(gaspi_wait(1, GASPI_BLOCK));
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      BEELINE_CHECK(std::all_of(memory, memory + 16, [](std::uint64_t word) { return word == 0xABCD; }));
      gaspi_notification_id_t found = 0;
      GASPI_EXPECT(GASPI_TIMEOUT, gaspi_notify_waitsome(0, 0, most_notifications, &found, GASPI_TEST));
      GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
    }));
  }
}

/// Calls a function with a list of `count` elements, of which the array `missing` (0 to 4) is null; 5: none is.
using ListCall = gaspi_return_t (*)(gaspi_number_t count, const std::vector<gaspi_segment_id_t>& segments,
                                    const std::vector<gaspi_offset_t>& offsets, const std::vector<gaspi_size_t>& sizes,
                                    int missing);

#define ARRAYS                                                                                 \
  count, missing == 0 ? nullptr : segments.data(), missing == 1 ? nullptr : offsets.data(), 0, \
      missing == 2 ? nullptr : segments.data(), missing == 3 ? nullptr : offsets.data(),       \
      missing == 4 ? nullptr : sizes.data()
#define LIST_CALL(name, ...)                                                                        \
  {                                                                                                 \
#name, [](gaspi_number_t count, const std::vector <gaspi_segment_id_t>& segments,               \
              const std::vector <gaspi_offset_t>& offsets, const std::vector <gaspi_size_t>& sizes, \
              int missing) { return name(ARRAYS, __VA_ARGS__); }                                    \
  }

const std::pair<const char*, ListCall> lists[] = {
    LIST_CALL(gaspi_write_list, 0, GASPI_TEST),
    LIST_CALL(gaspi_write_list_notify, 0, 3, 1, 0, GASPI_TEST),
    LIST_CALL(gaspi_read_list, 0, GASPI_TEST),
    LIST_CALL(gaspi_read_list_notify, 0, 3, 0, GASPI_TEST),
};

#undef LIST_CALL
#undef ARRAYS

TEST(GaspiBadInput, EveryListNeedsItsArraysAndAPossibleLength) {
  expect_gaspi({.ranks = 1}, [](int) {
    make_segment(0, 8);
    gaspi_number_t most = 0;
    GASPI_OK(gaspi_rw_list_elem_max(&most));
    const std::vector<gaspi_segment_id_t> segments(most + 1);
    const std::vector<gaspi_offset_t> offsets(most + 1);
    const std::vector<gaspi_size_t> sizes(most + 1, 8);
    for (const auto& [name, call] : lists) {
      for (int missing = 0; missing < 5; ++missing)
        expect_line(name, GASPI_ERR_NULLPTR, "null pointer",
                    [&] { return call(2, segments, offsets, sizes, missing); });
      for (const gaspi_number_t count : {gaspi_number_t{0}, most + 1, ~gaspi_number_t{0}})
        expect_line(name, GASPI_ERR_INV_NUM, join("a list of ", count, " elements"),
                    [&] { return call(count, segments, offsets, sizes, 5); });
    }
    gaspi_number_t entries = 1;
    GASPI_OK(gaspi_queue_size(0, &entries));
    BEELINE_CHECK_EQ(0U, entries);
  });
}

#define WITHOUT_OUTPUT(name, ...)           \
  {                                         \
#name, [] { return name(__VA_ARGS__); } \
  }

/// All functions with an output, without it; the other arguments are valid.
const std::pair<const char*, gaspi_return_t (*)()> without_output[] = {
    WITHOUT_OUTPUT(gaspi_config_get, nullptr),
    WITHOUT_OUTPUT(gaspi_initialized, nullptr),
    WITHOUT_OUTPUT(gaspi_proc_rank, nullptr),
    WITHOUT_OUTPUT(gaspi_proc_num, nullptr),
    WITHOUT_OUTPUT(gaspi_proc_local_rank, nullptr),
    WITHOUT_OUTPUT(gaspi_proc_local_num, nullptr),
    WITHOUT_OUTPUT(gaspi_state_vec_get, nullptr),
    WITHOUT_OUTPUT(gaspi_group_create, nullptr),
    WITHOUT_OUTPUT(gaspi_group_num, nullptr),
    WITHOUT_OUTPUT(gaspi_group_size, GASPI_GROUP_ALL, nullptr),
    WITHOUT_OUTPUT(gaspi_group_ranks, GASPI_GROUP_ALL, nullptr),
    WITHOUT_OUTPUT(gaspi_segment_num, nullptr),
    WITHOUT_OUTPUT(gaspi_segment_list, 1, nullptr),
    WITHOUT_OUTPUT(gaspi_segment_ptr, 0, nullptr),
    WITHOUT_OUTPUT(gaspi_segment_avail_local, nullptr),
    WITHOUT_OUTPUT(gaspi_segment_size, 0, 0, nullptr),
    WITHOUT_OUTPUT(gaspi_segment_bind, 1, nullptr, 64, GASPI_MEMORY_HOST),
    WITHOUT_OUTPUT(gaspi_segment_use, 1, nullptr, 64, GASPI_GROUP_ALL, GASPI_TEST, GASPI_MEMORY_HOST),
    WITHOUT_OUTPUT(gaspi_notify_waitsome, 0, 0, 1, nullptr, GASPI_TEST),
    WITHOUT_OUTPUT(gaspi_notify_reset, 0, 0, nullptr),
    WITHOUT_OUTPUT(gaspi_queue_create, nullptr, GASPI_TEST),
    WITHOUT_OUTPUT(gaspi_queue_size, 0, nullptr),
    WITHOUT_OUTPUT(gaspi_passive_receive, 0, 0, nullptr, 8, GASPI_TEST),
    WITHOUT_OUTPUT(gaspi_atomic_fetch_add, 0, 0, 0, 1, nullptr, GASPI_TEST),
    WITHOUT_OUTPUT(gaspi_atomic_compare_swap, 0, 0, 0, 0, 1, nullptr, GASPI_TEST),
    WITHOUT_OUTPUT(gaspi_group_max, nullptr),
    WITHOUT_OUTPUT(gaspi_segment_max, nullptr),
    WITHOUT_OUTPUT(gaspi_queue_num, nullptr),
    WITHOUT_OUTPUT(gaspi_queue_size_max, nullptr),
    WITHOUT_OUTPUT(gaspi_queue_max, nullptr),
    WITHOUT_OUTPUT(gaspi_transfer_size_min, nullptr),
    WITHOUT_OUTPUT(gaspi_transfer_size_max, nullptr),
    WITHOUT_OUTPUT(gaspi_notification_num, nullptr),
    WITHOUT_OUTPUT(gaspi_passive_transfer_size_min, nullptr),
    WITHOUT_OUTPUT(gaspi_passive_transfer_size_max, nullptr),
    WITHOUT_OUTPUT(gaspi_atomic_max, nullptr),
    WITHOUT_OUTPUT(gaspi_allreduce_buf_size, nullptr),
    WITHOUT_OUTPUT(gaspi_allreduce_elem_max, nullptr),
    WITHOUT_OUTPUT(gaspi_rw_list_elem_max, nullptr),
    WITHOUT_OUTPUT(gaspi_network_type, nullptr),
    WITHOUT_OUTPUT(gaspi_build_infrastructure, nullptr),
    WITHOUT_OUTPUT(gaspi_version, nullptr),
    WITHOUT_OUTPUT(gaspi_time_get, nullptr),
    WITHOUT_OUTPUT(gaspi_time_ticks, static_cast<gaspi_cycles_t*>(nullptr)),
    WITHOUT_OUTPUT(gaspi_time_resolution, nullptr),
    WITHOUT_OUTPUT(gaspi_cpu_frequency, nullptr),
    WITHOUT_OUTPUT(gaspi_print_error, GASPI_ERROR, nullptr),
    WITHOUT_OUTPUT(gaspi_numa_socket, nullptr),
    WITHOUT_OUTPUT(gaspi_statistic_counter_max, nullptr),
    WITHOUT_OUTPUT(gaspi_statistic_counter_info, 0, nullptr, nullptr, nullptr, nullptr),
    WITHOUT_OUTPUT(gaspi_statistic_counter_get, 0, 0, static_cast<unsigned long*>(nullptr)),
    WITHOUT_OUTPUT(gaspi_statistic_counter_get, 0, 0, static_cast<gaspi_number_t*>(nullptr)),
    WITHOUT_OUTPUT(gaspi_threads_init, nullptr),
    WITHOUT_OUTPUT(gaspi_threads_get_num_cores, nullptr),
    WITHOUT_OUTPUT(gaspi_gpu_ids, nullptr),
    WITHOUT_OUTPUT(gaspi_GPU_ids, nullptr),
    WITHOUT_OUTPUT(gaspi_gpu_number, nullptr),
    WITHOUT_OUTPUT(gaspi_number_of_GPUs, nullptr),
    WITHOUT_OUTPUT(gaspi_gpu_endpoint, nullptr, 8),
    WITHOUT_OUTPUT(gaspi_map_seg, 1, nullptr, 64, 0),
    WITHOUT_OUTPUT(gaspi_map_create, 1, nullptr, 64, GASPI_GROUP_ALL, GASPI_TEST, 0),
};

#undef WITHOUT_OUTPUT

TEST(GaspiBadInput, EveryOutputIsNeeded) {
  expect_gaspi({.ranks = 1}, [](int) {
    make_segment(0, 8);
    for (const auto& [name, call] : without_output) expect_line(name, GASPI_ERR_NULLPTR, "null pointer", call);
    gaspi_number_t groups = 0, segments = 0;
    GASPI_OK(gaspi_group_num(&groups));
    GASPI_OK(gaspi_segment_num(&segments));
    BEELINE_CHECK(groups == 1 && segments == 1);
  });
}

}  // namespace

}  // namespace beeline_test::gaspi_bad_input_test
