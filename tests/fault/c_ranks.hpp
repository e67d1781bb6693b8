// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Runs bodies of tests through the C interface, as ranks that are threads.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "beeline/beeline.h"
#include "tests/support/check.hpp"

namespace beeline_test::c_interface_test {

using Body = std::function<void(beeline_world*, beeline_team*)>;

inline int32_t call_body(beeline_world* world, void* body) {
  try {
    (*static_cast<const Body*>(body))(world, beeline_world_team(world));
  } catch (const CheckFailure& failure) {
    ADD_FAILURE() << failure.what();
    return 1;
  }
  return 0;
}

inline void check_ok(beeline_status status) {
  if (status != BEELINE_OK) throw CheckFailure(join(beeline_status_name(status), ": ", beeline_last_error()));
}

/// Settings of a world whose ranks are threads.
class Settings {
 public:
  explicit Settings(int ranks) {
    check_ok(beeline_config_create(&config_));
    set("THREADS", "1"), set("SIZE", std::to_string(ranks)), set("DEVICE", "cpu"), set("BEELINE_DEADLINE_S", "20");
    set("HEAP_BYTES", "8M"), set("PINNED_HEAP_BYTES", "8M");
  }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;
  ~Settings() { EXPECT_EQ(BEELINE_OK, beeline_config_destroy(config_)); }
  void set(const char* name, const std::string& value) { check_ok(beeline_config_set(config_, name, value.c_str())); }
  [[nodiscard]] beeline_config* get() const { return config_; }

 private:
  beeline_config* config_ = nullptr;
};

/// Runs `body` as ranks that are threads. Returns the exit status.
inline int run_ranks(const Settings& settings, Body body) {
  int32_t exit_status = -1;
  EXPECT_EQ(BEELINE_OK, beeline_run(settings.get(), call_body, &body, &exit_status)) << beeline_last_error();
  return exit_status;
}
inline void expect_passed(int ranks, const Body& body) { EXPECT_EQ(0, run_ranks(Settings(ranks), body)); }

inline void check_refused(beeline_status status, const char* text) {
  BEELINE_CHECK_EQ(static_cast<beeline_status>(BEELINE_INVALID_ARGUMENT), status);
  BEELINE_CHECK_CONTAINS(beeline_last_error(), text);
}

template <class T>
T* allocate(beeline_team* team, std::size_t count, int32_t heap = BEELINE_HEAP_SYMMETRIC) {
  void* memory = nullptr;
  check_ok(beeline_allocate(team, count * sizeof(T), heap, &memory));
  return static_cast<T*>(memory);
}
inline uint64_t* allocate_signal(beeline_team* team) {
  uint64_t* signal = nullptr;
  check_ok(beeline_allocate_signals(team, 1, BEELINE_HEAP_SYMMETRIC, &signal));
  return signal;
}
inline int32_t peer_of(beeline_team* team) { return 1 - beeline_team_rank(team); }

}  // namespace beeline_test::c_interface_test
