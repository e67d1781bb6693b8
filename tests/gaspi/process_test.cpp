// SPDX-License-Identifier: Apache-2.0
// Starting and ending of ranks, the configuration, connections, and functions without communication.
#include <GASPI.h>
#include <GASPI_Ext.h>
#include <GASPI_Threads.h>
#include <PGASPI.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "tests/gaspi/every_call.hpp"
#include "tests/gaspi/gaspi_ranks.hpp"

namespace beeline_test::gaspi_process_test {

namespace {

using namespace std::chrono_literals;

void expect_refused_outside() {
  GaspiOutputs out;
  for (const GaspiCall& each : every_gaspi_call(out)) {
    gaspi_return_t result = GASPI_SUCCESS;
    const std::string log = logged_by([&] { result = each.call(); });
    check_equal(static_cast<int>(GASPI_ERR_NOINIT), static_cast<int>(result), each.name, __FILE__, __LINE__);
    BEELINE_CHECK_CONTAINS(log, each.name);
  }
}

TEST(GaspiProcess, FunctionsAreRefusedBeforeInitAndAfterTerm) {
  expect_all_passed(run_processes_for_gaspi({.ranks = 1}, [](int) {
    expect_refused_outside();
    GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
    gaspi_number_t initialized = 0;
    GASPI_OK(gaspi_initialized(&initialized));
    BEELINE_CHECK_EQ(1U, initialized);
    GASPI_REFUSED(GASPI_ERR_INITED, "gaspi_proc_init", gaspi_proc_init(GASPI_BLOCK));
    GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
    GASPI_OK(gaspi_initialized(&initialized));
    BEELINE_CHECK_EQ(0U, initialized);
    expect_refused_outside();
  }));
}

TEST(GaspiProcess, RanksKnowTheirNumber) {
  for (const int nodes : {1, 2}) {
    expect_gaspi({.ranks = 4, .nodes = nodes}, [&](int mine) {
      gaspi_rank_t rank = 99, ranks = 0, local = 99, locals = 0;
      GASPI_OK(gaspi_proc_rank(&rank));
      GASPI_OK(gaspi_proc_num(&ranks));
      GASPI_OK(gaspi_proc_local_rank(&local));
      GASPI_OK(gaspi_proc_local_num(&locals));
      BEELINE_CHECK_EQ(mine, static_cast<int>(rank));
      BEELINE_CHECK_EQ(4, static_cast<int>(ranks));
      BEELINE_CHECK_EQ(4 / nodes, static_cast<int>(locals));
      BEELINE_CHECK_EQ(mine % (4 / nodes), static_cast<int>(local));
    });
  }
}

TEST(GaspiProcess, InitContinuesAfterATimeout) {
  Latecomer latecomer(1);
  expect_all_passed(run_processes_for_gaspi({}, [&](int rank) {
    latecomer.make(rank == 1, gaspi_proc_init, rank == 0 ? 20 : GASPI_TEST);
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
  }));
}

TEST(GaspiProcess, AMissingEnvironmentIsNamed) {
  expect_all_passed(run_processes_for_gaspi({.ranks = 1}, [](int) {
    setenv("BEELINE_SIZE", "many", 1);
    gaspi_return_t result = GASPI_SUCCESS;
    const std::string log = logged_by([&] { result = gaspi_proc_init(GASPI_BLOCK); });
    GASPI_EXPECT(GASPI_ERR_ENV, result);
    BEELINE_CHECK_CONTAINS(log, "BEELINE_SIZE");
  }));
}

TEST(GaspiConfig, WhatIsSetHolds) {
  expect_all_passed(run_processes_for_gaspi({}, [](int) {
    gaspi_config_t config;
    GASPI_OK(gaspi_config_get(&config));
    config.queue_num = 3;
    config.queue_size_max = 16;
    config.group_max = 4;
    config.segment_max = 5;
    config.transfer_size_max = 4096;
    config.notification_num = 100;
    config.passive_transfer_size_max = 128;
    config.rw_list_elem_max = 7;
    GASPI_OK(gaspi_config_set(config));
    GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
    gaspi_number_t number = 0;
    gaspi_size_t size = 0;
    GASPI_OK(gaspi_queue_num(&number));
    BEELINE_CHECK_EQ(3U, number);
    GASPI_OK(gaspi_queue_size_max(&number));
    BEELINE_CHECK_EQ(16U, number);
    GASPI_OK(gaspi_segment_max(&number));
    BEELINE_CHECK_EQ(5U, number);
    GASPI_OK(gaspi_transfer_size_max(&size));
    BEELINE_CHECK_EQ(4096UL, size);
    GASPI_OK(gaspi_notification_num(&number));
    BEELINE_CHECK_EQ(100U, number);
    GASPI_OK(gaspi_passive_transfer_size_max(&size));
    BEELINE_CHECK_EQ(128UL, size);
    GASPI_OK(gaspi_rw_list_elem_max(&number));
    BEELINE_CHECK_EQ(7U, number);
    GASPI_REFUSED(GASPI_ERR_INITED, "gaspi_config_set", gaspi_config_set(config));
    // The limits hold, too.
    make_segment(0, 1024);
    GASPI_REFUSED(GASPI_ERR_INV_QUEUE, "queue", gaspi_write(0, 0, 0, 0, 0, 8, 3, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_COMMSIZE, "4097 bytes", gaspi_write(0, 0, 0, 0, 0, 4097, 0, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_NOTIF_ID, "notification", gaspi_notify(0, 0, 100, 1, 0, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment", gaspi_segment_alloc(5, 64, GASPI_MEM_DEFAULT));
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
  }));
}

TEST(GaspiConfig, FieldsOfOtherNetworksAreIgnoredAndLoggedOnce) {
  expect_all_passed(run_processes_for_gaspi({.ranks = 1}, [](int) {
    gaspi_config_t config;
    GASPI_OK(gaspi_config_get(&config));
    config.network = GASPI_ROCE;
    config.sn_persistent = 1;
    const std::string log = logged_by([&] {
      GASPI_OK(gaspi_config_set(config));
      GASPI_OK(gaspi_config_set(config));
      GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
    });
    BEELINE_CHECK_CONTAINS(log, "network");
    BEELINE_CHECK_CONTAINS(log, "sn_persistent");
    BEELINE_CHECK_EQ(log.find("sn_persistent"), log.rfind("sn_persistent"));
    GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
  }));
}

TEST(GaspiConfig, ValuesOutOfRangeAreRefused) {
  expect_all_passed(run_processes_for_gaspi({.ranks = 1}, [](int) {
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_config_get", gaspi_config_get(nullptr));
    gaspi_config_t valid;
    GASPI_OK(gaspi_config_get(&valid));
    const auto refused = [&](const char* field, const auto& change) {
      gaspi_config_t config = valid;
      change(config);
      GASPI_REFUSED(GASPI_ERR_CONFIG, field, gaspi_config_set(config));
    };
    refused("queue_num", [](gaspi_config_t& config) { config.queue_num = 1000; });
    refused("queue_size_max", [](gaspi_config_t& config) { config.queue_size_max = 0; });
    refused("segment_max", [](gaspi_config_t& config) { config.segment_max = 100'000; });
    refused("notification_num", [](gaspi_config_t& config) { config.notification_num = 1 << 20; });
    refused("build_infrastructure", [](gaspi_config_t& config) { config.build_infrastructure = 9; });
  }));
}

TEST(GaspiConnections, WithoutTopologyRanksConnectThemselves) {
  expect_all_passed(run_processes_for_gaspi({}, [](int rank) {
    gaspi_config_t config;
    GASPI_OK(gaspi_config_get(&config));
    config.build_infrastructure = GASPI_TOPOLOGY_NONE;
    GASPI_OK(gaspi_config_set(config));
    GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
    GASPI_OK(gaspi_segment_alloc(0, 64, GASPI_MEM_INITIALIZED));
    const auto other = static_cast<gaspi_rank_t>(1 - rank);
    GASPI_OK(repeat([&](gaspi_timeout_t limit) { return gaspi_segment_register(0, other, limit); }));
    GASPI_REFUSED(GASPI_ERROR, "connect", gaspi_write(0, 0, other, 0, 8, 8, 0, GASPI_BLOCK));
    GASPI_OK(repeat([&](gaspi_timeout_t limit) { return gaspi_connect(other, limit); }));
    GASPI_OK(gaspi_connect(other, GASPI_BLOCK));  // connected already
    GASPI_OK(repeat([&](gaspi_timeout_t limit) { return gaspi_barrier(GASPI_GROUP_ALL, limit); }));
    GASPI_OK(gaspi_write_notify(0, 0, other, 0, 8, 8, 3, 1, 0, GASPI_BLOCK));
    take_notification(0, 3);
    GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    GASPI_OK(gaspi_disconnect(other, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERROR, "connect", gaspi_write(0, 0, other, 0, 8, 8, 0, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_RANK, "rank 2", gaspi_connect(2, GASPI_BLOCK));
    GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
  }));
}

TEST(GaspiProcess, HealthyRanksAnswer) {
  expect_gaspi({.ranks = 3}, [](int) {
    gaspi_state_t states[3] = {9, 9, 9};
    GASPI_OK(gaspi_state_vec_get(states));
    for (gaspi_rank_t other = 0; other < 3; ++other) {
      BEELINE_CHECK_EQ(static_cast<int>(GASPI_STATE_HEALTHY), static_cast<int>(states[other]));
      GASPI_OK(repeat([&](gaspi_timeout_t limit) { return gaspi_proc_ping(other, limit); }, 100));
    }
    GASPI_REFUSED(GASPI_ERR_INV_RANK, "rank 3", gaspi_proc_ping(3, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_state_vec_get", gaspi_state_vec_get(nullptr));
  });
}

/// Functions that need no other rank.
void use_the_environment() {
  float version = 0;
  GASPI_OK(gaspi_version(&version));
  BEELINE_CHECK(version > 17.05F && version < 17.15F);
  gaspi_time_t begin = 0, end = 0;
  GASPI_OK(gaspi_time_get(&begin));
  std::this_thread::sleep_for(20ms);
  GASPI_OK(gaspi_time_get(&end));
  BEELINE_CHECK(end - begin >= 19 && end - begin < 5000);
  gaspi_cycles_t ticks = 0, later = 0;
  GASPI_OK(gaspi_time_ticks(&ticks));
  GASPI_OK(gaspi_time_ticks(&later));
  BEELINE_CHECK(later >= ticks);
  gaspi_time_t resolution = -1;
  GASPI_OK(gaspi_time_ticks(&resolution));
  BEELINE_CHECK(resolution > 0 && resolution < 20);
  gaspi_float megahertz = 0;
  GASPI_OK(gaspi_cpu_frequency(&megahertz));
  BEELINE_CHECK(megahertz > 1 && megahertz < 100'000);
  for (int code = GASPI_ERROR; code <= GASPI_ERR_MEMALLOC; ++code) {
    gaspi_string_t text = nullptr;
    GASPI_OK(gaspi_print_error(static_cast<gaspi_return_t>(code), &text));
    BEELINE_CHECK(text != nullptr && std::strlen(text) > 3);
    BEELINE_CHECK(std::strlen(gaspi_error_str(static_cast<gaspi_return_t>(code))) > 3);
    std::free(text);
  }
  GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_version", gaspi_version(nullptr));
  GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_time_get", gaspi_time_get(nullptr));
  GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_print_error", gaspi_print_error(GASPI_ERROR, nullptr));
}

TEST(GaspiEnvironment, IsThereAtAnyTime) {
  expect_all_passed(run_processes_for_gaspi({.ranks = 1}, [](int) {
    use_the_environment();
    GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
    use_the_environment();
    GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
    use_the_environment();
  }));
}

TEST(GaspiEnvironment, TheProfilingInterfaceHasTheSameFunctions) {
  expect_all_passed(run_processes_for_gaspi({.ranks = 1}, [](int) {
    GASPI_OK(pgaspi_proc_init(GASPI_BLOCK));
    gaspi_rank_t ranks = 0;
    GASPI_OK(pgaspi_proc_num(&ranks));
    BEELINE_CHECK_EQ(1, static_cast<int>(ranks));
    GASPI_OK(gaspi_pcontrol(nullptr));
    GASPI_OK(pgaspi_proc_term(GASPI_BLOCK));
  }));
}

TEST(GaspiStatistics, CountersCountFromTheirLevelOn) {
  expect_gaspi({.ranks = 2}, [](int rank) {
    make_segment(0, 64);
    gaspi_number_t counters = 0;
    GASPI_OK(gaspi_statistic_counter_max(&counters));
    BEELINE_CHECK(counters > 0);
    GASPI_OK(gaspi_statistic_verbosity_level(10));
    for (int i = 0; i < 5; ++i)
      GASPI_OK(gaspi_write(0, 0, static_cast<gaspi_rank_t>(1 - rank), 0, 64, 64, 0, GASPI_BLOCK));
    GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
    bool five = false;
    for (gaspi_number_t counter = 0; counter < counters; ++counter) {
      gaspi_statistic_argument_t argument{};
      gaspi_string_t name = nullptr, description = nullptr;
      gaspi_number_t level = 0;
      GASPI_OK(gaspi_statistic_counter_info(counter, &argument, &name, &description, &level));
      BEELINE_CHECK(std::strlen(name) > 0 && std::strlen(description) > 0);
      const gaspi_number_t of = argument == GASPI_STATISTIC_ARGUMENT_RANK ? static_cast<gaspi_number_t>(1 - rank) : 0;
      unsigned long value = 0;
      GASPI_OK(gaspi_statistic_counter_get(counter, of, &value));
      five = five || value == 5;
      GASPI_OK(gaspi_statistic_counter_reset(counter));
      gaspi_number_t number = 1;
      GASPI_OK(gaspi_statistic_counter_get(counter, of, &number));
      BEELINE_CHECK_EQ(0U, number);
    }
    BEELINE_CHECK(five);  // the writes
    GASPI_REFUSED(GASPI_ERROR, "counter", gaspi_statistic_counter_reset(counters));
  });
}

void* add_its_number(void* sum) {
  gaspi_int number = -1;
  if (gaspi_threads_register(&number) == GASPI_SUCCESS) __atomic_fetch_add(static_cast<int*>(sum), 1 + number, 5);
  gaspi_threads_sync();
  return nullptr;
}

TEST(GaspiThreads, AreASet) {
  expect_all_passed(run_processes_for_gaspi({.ranks = 1}, [](int) {
    GASPI_REFUSED(GASPI_ERROR, "gaspi_threads", gaspi_threads_term());
    GASPI_OK(gaspi_threads_init_user(3));
    gaspi_int total = 0, mine = -1, cores = 0;
    GASPI_OK(gaspi_threads_get_total(&total));
    BEELINE_CHECK_EQ(3, total);
    GASPI_OK(gaspi_threads_get_num_cores(&cores));
    BEELINE_CHECK(cores > 0);
    int sum = 0;
    for (int i = 0; i < 2; ++i) GASPI_OK(gaspi_threads_run(add_its_number, &sum));
    GASPI_REFUSED(GASPI_ERROR, "gaspi_threads_run", gaspi_threads_run(add_its_number, &sum));
    GASPI_OK(gaspi_threads_register(&mine));
    gaspi_threads_sync();
    BEELINE_CHECK_EQ(1 + 2 + 3, sum + 1 + mine);
    GASPI_OK(gaspi_threads_term());
  }));
}

/// What a thread of the set has found.
struct Refusals {
  int count = 0;
  std::atomic<bool> has_ended{false};
};

/// Calls what a started thread, or one that is no member, may not call.
void* end_the_set(void* refusals) {
  auto& refused = *static_cast<Refusals*>(refusals);
  gaspi_int number = -1;
  if (gaspi_threads_term() == GASPI_ERROR) ++refused.count;
  gaspi_threads_sync();  // returns at once
  if (gaspi_threads_sync_all(GASPI_GROUP_ALL, GASPI_TEST) == GASPI_ERROR) ++refused.count;
  if (gaspi_threads_register(&number) == GASPI_SUCCESS && gaspi_threads_register(&number) == GASPI_ERROR)
    ++refused.count;
  refused.has_ended = true;
  return nullptr;
}

TEST(GaspiThreads, RefuseWhatWouldWaitForEver) {
  expect_all_passed(run_processes_for_gaspi({.ranks = 1}, [](int) {
    Refusals refused;
    gaspi_int number = -1;
    const std::string log = logged_by([&] {
      GASPI_OK(gaspi_threads_init_user(2));
      GASPI_OK(gaspi_threads_run(end_the_set, &refused));
      for (int wait = 0; wait < 10'000 && !refused.has_ended; ++wait)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      BEELINE_CHECK_EQ(true, refused.has_ended.load());
      GASPI_OK(gaspi_threads_term());
    });
    BEELINE_CHECK_EQ(3, refused.count);
    BEELINE_CHECK_EQ(4, static_cast<int>(std::count(log.begin(), log.end(), '\n')));
    BEELINE_CHECK_CONTAINS(log, "gaspi_threads_term: a thread that gaspi_threads_run has started cannot end the set");
    BEELINE_CHECK_CONTAINS(log, "gaspi_threads_sync: the calling thread is not registered");
    GASPI_OK(gaspi_threads_init_user(1));
    GASPI_REFUSED(GASPI_ERROR, "not registered", gaspi_threads_get_tid(&number));
    GASPI_OK(gaspi_threads_register(&number));
    GASPI_OK(gaspi_threads_term());
    GASPI_OK(gaspi_threads_init_user(1));
    GASPI_REFUSED(GASPI_ERROR, "not registered", gaspi_threads_get_tid(&number));  // in another set it was
    GASPI_OK(gaspi_threads_term());
  }));
}

TEST(GaspiPrintf, OfNothingIsRefused) {
  expect_all_passed(run_processes_for_gaspi({.ranks = 1}, [](int) {
    const char* const nothing = nullptr;
    BEELINE_CHECK_CONTAINS(logged_by([&] { gaspi_printf(nothing); }), "gaspi_printf: format is a null pointer");
  }));
}

TEST(GaspiPrintf, PrintsTheRankAndTheText) {
  expect_all_passed(run_processes_for_gaspi({.ranks = 1}, [](int) {
    GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
    int ends[2];
    BEELINE_CHECK_EQ(0, pipe(ends));
    const int before = dup(STDOUT_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    gaspi_printf("a value: %d\n", 42);
    dup2(before, STDOUT_FILENO);
    char text[100] = {};
    BEELINE_CHECK(read(ends[0], text, sizeof text - 1) > 0);
    BEELINE_CHECK_EQ(std::string("[0] a value: 42\n"), std::string(text));
    GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
  }));
}

}  // namespace

}  // namespace beeline_test::gaspi_process_test
