// SPDX-License-Identifier: Apache-2.0
#include "beeline/core/config.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "beeline/core/error.hpp"
#include "core/setting.hpp"

namespace beeline {

namespace {

/// Starts without any BEELINE_ variable in the environment, and leaves none set.
class ConfigFromEnvironment : public ::testing::Test {
 protected:
  ConfigFromEnvironment() { clear(); }
  ~ConfigFromEnvironment() override { clear(); }
  static void clear() {
    for (const ConfigEntry& entry : describe(Config{})) unsetenv(entry.variable.c_str());
  }
};

TEST_F(ConfigFromEnvironment, NothingSetGivesTheDefaults) {
  const Config config = Config::from_environment();
  EXPECT_EQ(0, config.rank);
  EXPECT_EQ(1, config.size);
  EXPECT_EQ("auto", config.device);
  EXPECT_EQ(30'000'000'000, config.deadline_ns);
  EXPECT_EQ(38u, config.slot_shift);
}

TEST(UnknownVariables, AreNamedWithTheNearestOne) {
  const char* const entries[] = {
      "BEELINE_DEADLNE_S=3", "BEELINE_HEAP_BYTES=1M", "BEELINE_BIN=/bin", "BEELINE_TEST_X=1", "HOME=/", nullptr};
  const std::vector<std::string> warnings = unknown_variables(entries);
  ASSERT_EQ(1u, warnings.size());
  EXPECT_NE(std::string::npos, warnings[0].find("BEELINE_DEADLNE_S is no variable of Beeline")) << warnings[0];
  EXPECT_NE(std::string::npos, warnings[0].find("the nearest one is BEELINE_DEADLINE_S")) << warnings[0];
}

TEST_F(ConfigFromEnvironment, EveryVariableIsRead) {
  setenv("BEELINE_SIZE", "64", 1);
  setenv("BEELINE_RANK", "63", 1);
  setenv("BEELINE_THREADS", "1", 1);
  setenv("BEELINE_RENDEZVOUS", "127.0.0.1:4711", 1);
  setenv("BEELINE_TOKEN", "secret", 1);
  setenv("BEELINE_DEVICE", "cuda:1,0", 1);
  setenv("BEELINE_DEADLINE_S", "0.25", 1);
  setenv("BEELINE_STREAM_DEADLINE_S", "1e3", 1);
  setenv("BEELINE_HEAP_BYTES", "2G", 1);
  setenv("BEELINE_PINNED_HEAP_BYTES", "3M", 1);
  setenv("BEELINE_SLOT_SHIFT", "32", 1);
  setenv("BEELINE_CHUNK_BYTES", "5K", 1);
  setenv("BEELINE_PEER_ACCESS", "0", 1);
  setenv("BEELINE_SPLIT_NODES", "3", 1);
  setenv("BEELINE_GPU_PAYLOADS", "ucx", 1);
  setenv("BEELINE_MEMORY_KEYS", "never", 1);
  setenv("BEELINE_CHECK", "1", 1);
  setenv("BEELINE_CPU_STORES", "0", 1);
  setenv("BEELINE_HOST_THREADS", "7", 1);
  setenv("BEELINE_WAIT_POLICY", "event", 1);
  setenv("BEELINE_WAIT_PERIOD_US", "5000", 1);
  setenv("BEELINE_POWERCAP", "/counters", 1);
  setenv("BEELINE_LOG", "debug", 1);
  const Config config = Config::from_environment();
  EXPECT_EQ(64, config.size);
  EXPECT_EQ(63, config.rank);
  EXPECT_TRUE(config.threads);
  EXPECT_EQ("127.0.0.1:4711", config.rendezvous);
  EXPECT_EQ("secret", config.token);
  EXPECT_EQ("cuda:1,0", config.device);
  EXPECT_EQ(250'000'000, config.deadline_ns);
  EXPECT_EQ(1'000'000'000'000, config.stream_deadline_ns);
  EXPECT_EQ(std::size_t{2} << 30, config.heap_bytes);
  EXPECT_EQ(std::size_t{3} << 20, config.pinned_heap_bytes);
  EXPECT_EQ(32u, config.slot_shift);
  EXPECT_EQ(std::size_t{5} << 10, config.chunk_bytes);
  EXPECT_FALSE(config.peer_access);
  EXPECT_EQ(3, config.split_nodes);
  EXPECT_EQ(GpuPayloads::ucx, config.gpu_payloads);
  EXPECT_EQ(MemoryKeys::never, config.memory_keys);
  EXPECT_FALSE(config.cpu_stores);
  EXPECT_EQ(7, config.host_threads);
  EXPECT_EQ(WaitPolicy::event, config.wait_policy);
  EXPECT_EQ(5000, config.wait_period_us);
  EXPECT_EQ("/counters", config.powercap);
  EXPECT_EQ(LogLevel::debug, config.log_level);
}

TEST_F(ConfigFromEnvironment, WhatIsEmptyCountsAsUnset) {
  const auto values = [](const Config& config) {
    std::string all;
    for (const ConfigEntry& entry : describe(config)) all += entry.value + '\n';
    return all;
  };
  for (const ConfigEntry& entry : describe(Config{})) setenv(entry.variable.c_str(), "", 1);
  EXPECT_EQ(values(Config{}), values(Config::from_environment()));
}

TEST_F(ConfigFromEnvironment, SettingsReadWhatTheyShow) {
  setenv("BEELINE_ENGINE_CORES", "0,2", 1);
  const Config config = Config::from_environment();
  Config read;
  for (const detail::Setting& setting : detail::settings()) {
    if (const std::string text = setting.show(config); !text.empty() && text != "unset")
      setting.read(read, setting, text);
    EXPECT_EQ(setting.show(config), setting.show(read)) << setting.variable;
  }
}

struct BadValue {
  const char *variable, *value;
};

class BadEnvironment : public ConfigFromEnvironment, public ::testing::WithParamInterface<BadValue> {};

TEST_P(BadEnvironment, IsRefusedByName) {
  const auto& [variable, value] = GetParam();
  setenv(variable, value, 1);
  try {
    static_cast<void>(Config::from_environment());
    ADD_FAILURE() << variable << "=\"" << value << "\" was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(Status::invalid_argument, error.code());
    const std::string setting = std::string(variable) + "=\"" + value + '"';
    EXPECT_NE(std::string::npos, std::string(error.what()).find(setting)) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Values, BadEnvironment,
    ::testing::Values(BadValue{"BEELINE_SIZE", "0"}, BadValue{"BEELINE_SIZE", "1025"}, BadValue{"BEELINE_SIZE", "two"},
                      BadValue{"BEELINE_SIZE", "2 "}, BadValue{"BEELINE_SIZE", "99999999999999999999"},
                      BadValue{"BEELINE_RANK", "1"}, BadValue{"BEELINE_RANK", "-1"}, BadValue{"BEELINE_THREADS", "yes"},
                      BadValue{"BEELINE_DEADLINE_S", "0"}, BadValue{"BEELINE_DEADLINE_S", "-1"},
                      BadValue{"BEELINE_DEADLINE_S", "nan"}, BadValue{"BEELINE_DEADLINE_S", "inf"},
                      BadValue{"BEELINE_DEADLINE_S", "1s"}, BadValue{"BEELINE_DEADLINE_S", "1e-12"},
                      BadValue{"BEELINE_STREAM_DEADLINE_S", "x"}, BadValue{"BEELINE_HEAP_BYTES", "1T"},
                      BadValue{"BEELINE_HEAP_BYTES", "-1"}, BadValue{"BEELINE_HEAP_BYTES", "1.5G"},
                      BadValue{"BEELINE_HEAP_BYTES", "99999999999G"}, BadValue{"BEELINE_SLOT_SHIFT", "31"},
                      BadValue{"BEELINE_SLOT_SHIFT", "41"}, BadValue{"BEELINE_CHUNK_BYTES", "0"},
                      BadValue{"BEELINE_HYBRID_CHUNK_BYTES", "0"}, BadValue{"BEELINE_HYBRID_CHUNKS", "65"},
                      BadValue{"BEELINE_HOST_THREADS", "0"}, BadValue{"BEELINE_HOST_THREADS", "257"},
                      BadValue{"BEELINE_GPU_PAYLOADS", "1"}, BadValue{"BEELINE_MEMORY_KEYS", "1"},
                      BadValue{"BEELINE_WAIT_POLICY", "doze"}, BadValue{"BEELINE_CPU_STORES", "yes"},
                      BadValue{"BEELINE_WAIT_PERIOD_US", "0"}, BadValue{"BEELINE_LOG", "loud"}),
    [](const ::testing::TestParamInfo<BadValue>& each) {
      return each.param.variable + ("_" + std::to_string(each.index));
    });

TEST_F(ConfigFromEnvironment, DescriptionsShowEverySettingButTheToken) {
  Config config;
  config.token = "very-secret";
  config.deadline_ns = 1'500'000'000;
  bool deadline_shown = false, heaps_shown = false;
  for (const ConfigEntry& entry : describe(config)) {
    EXPECT_TRUE(entry.variable.starts_with("BEELINE_"));
    EXPECT_FALSE(entry.meaning.empty());
    EXPECT_EQ(std::string::npos, entry.value.find("secret"));
    if (entry.variable == "BEELINE_TOKEN") {
      EXPECT_EQ("set", entry.value);
    }
    if (entry.variable == "BEELINE_DEADLINE_S") deadline_shown = entry.value == "1.5";
    if (entry.variable == "BEELINE_HEAP_BYTES")
      heaps_shown = entry.meaning.find("0: 1024 MiB, or 256") != std::string::npos;
  }
  EXPECT_TRUE(deadline_shown);
  EXPECT_TRUE(heaps_shown);
}

}  // namespace

}  // namespace beeline
