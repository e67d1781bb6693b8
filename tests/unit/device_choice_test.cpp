// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/runtime/device.hpp"
#include "beeline/runtime/gpu_place.hpp"

namespace beeline {

namespace {

using Inventories = std::vector<DeviceInventory>;

/// Inventories of ranks that are threads of one process.
Inventories threads(int ranks, std::vector<std::string> gpus) {
  return Inventories(static_cast<std::size_t>(ranks), DeviceInventory{7, std::move(gpus)});
}

Inventories processes(int ranks, const std::vector<std::string>& gpus) {
  Inventories all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back({100 + static_cast<std::uint64_t>(rank), gpus});
  return all;
}

Inventories with_choices(Inventories inventories, const std::vector<std::string>& choices) {
  for (std::size_t rank = 0; rank < inventories.size(); ++rank) inventories[rank].choice = choices[rank];
  return inventories;
}

Inventories with_choice(const Inventories& inventories, const std::string& choice) {
  return with_choices(inventories, devices_of_ranks(choice, static_cast<int>(inventories.size())));
}

std::vector<int> gpus(const Inventories& inventories, bool mps = false) {
  std::vector<int> all;
  for (int rank = 0; rank < static_cast<int>(inventories.size()); ++rank)
    all.push_back(choose_gpu(rank, inventories, mps));
  return all;
}

std::vector<int> choices(const std::string& choice, const Inventories& inventories, bool mps = false) {
  return gpus(with_choice(inventories, choice), mps);
}

std::string refusal(Status code, const std::string& choice, const Inventories& inventories) {
  try {
    static_cast<void>(choose_gpu(0, with_choice(inventories, choice), false));
  } catch (const Error& error) {
    EXPECT_EQ(code, error.code()) << error.what();
    return error.what();
  }
  ADD_FAILURE() << choice << " was accepted";
  return {};
}

TEST(ChooseGpu, CpuNeverTakesAGpu) { EXPECT_EQ((std::vector{-1, -1}), choices("cpu", threads(2, {"a", "b"}))); }

TEST(ChooseGpu, AutoSharesAmongThreads) {
  EXPECT_EQ((std::vector{0, 1, 0, 1}), choices("auto", threads(4, {"a", "b"})));
  EXPECT_EQ((std::vector{-1, -1}), choices("auto", threads(2, {})));
}

TEST(ChooseGpu, AutoGivesAllProcessesGpusOrNone) {
  EXPECT_EQ((std::vector{0, 1}), choices("auto", processes(2, {"a", "b"})));
  EXPECT_EQ((std::vector{-1, -1, -1}), choices("auto", processes(3, {"a", "b"}))) << "two processes would share a GPU";
  EXPECT_EQ((std::vector{0, 1, 0}), choices("auto", processes(3, {"a", "b"}), true)) << "MPS lets them share";
  Inventories one_without = processes(2, {"a", "b"});
  one_without[1].gpus.clear();
  EXPECT_EQ((std::vector{-1, -1}), choices("auto", one_without));
}

TEST(ChooseGpu, ListsGoRoundByRank) {
  EXPECT_EQ((std::vector{2, 0, 2}), choices("cuda:2,0", threads(3, {"a", "b", "c"})));
  EXPECT_EQ((std::vector{1, 0}), choices("cuda:GPU-b,GPU-a", threads(2, {"GPU-a", "GPU-b"})));
}

TEST(ChooseGpu, ProcessesThatSeeOneGpuEachUnderOneIndexDoNotShare) {
  Inventories separate = processes(2, {"a"});
  separate[1].gpus = {"b"};
  EXPECT_EQ((std::vector{0, 0}), choices("auto", separate));
  EXPECT_EQ((std::vector{0, 0}), choices("cuda:0", separate));
}

TEST(ChooseGpu, SharingProcessesAreRefusedWithoutMps) {
  const std::string text = refusal(Status::no_resource, "cuda:0", processes(2, {"a", "b"}));
  EXPECT_NE(std::string::npos, text.find("rank 1")) << text;
  EXPECT_NE(std::string::npos, text.find("MPS")) << text;
  EXPECT_EQ((std::vector{0, 0}), choices("cuda:0", processes(2, {"a"}), true));
}

TEST(ChooseGpu, UnknownDevicesAreNamed) {
  for (const char* choice : {"", "gpu", "CPU", "cuda", "cuda:", "cuda0", "auto "})
    EXPECT_NE(std::string::npos,
              refusal(Status::invalid_argument, choice, threads(1, {"a"})).find(std::string("\"") + choice + '"'));
  for (const char* id : {"1", "-1", "x", "0x0", "GPU-c", "0 "}) {
    const std::string text = refusal(Status::invalid_argument, std::string("cuda:") + id, threads(1, {"a"}));
    EXPECT_NE(std::string::npos, text.find(std::string("cuda:") + id)) << text;
    EXPECT_NE(std::string::npos, text.find("1 GPU(s) visible: a")) << text;
  }
  static_cast<void>(refusal(Status::invalid_argument, "cuda:,0", threads(1, {"a"})));
}

TEST(ChooseGpu, ListsNameADeviceForEachRank) {
  using Names = std::vector<std::string>;
  EXPECT_EQ((Names{"cuda:0", "cuda:1", "cpu", "cpu"}), devices_of_ranks("cuda:0,cuda:1,cpu,cpu", 4));
  EXPECT_EQ((Names{"cpu", "cuda:GPU-b"}), devices_of_ranks("cpu,cuda:GPU-b", 2));
  EXPECT_EQ((Names{"cuda:0", "cuda:1", "cuda:0"}), devices_of_ranks("cuda:0,1", 3)) << "IDs in turn";
  EXPECT_EQ((Names{"cpu", "cpu"}), devices_of_ranks("cpu", 2));
  EXPECT_EQ((std::vector{0, 1, -1, -1}), choices("cuda:0,cuda:1,cpu,cpu", processes(4, {"a", "b"})));
  EXPECT_EQ((std::vector{-1, 1, -1}), choices("cpu,cuda:1,cpu", threads(3, {"a", "b"})));
  EXPECT_EQ((std::vector{1, -1, 1}), choices("cuda:1,cpu,cuda:1", threads(3, {"a", "b"}))) << "threads may share";
  Inventories blind = processes(3, {"a", "b"});
  blind[1].gpus.clear();
  EXPECT_EQ((std::vector{0, -1, 1}), choices("cuda:0,cpu,cuda:1", blind)) << "a host rank needs to see no GPU";
}

TEST(ChooseGpu, BadListsAreNamed) {
  const Inventories four = processes(4, {"a", "b"});
  for (const char* list : {"cuda:0,1,cpu,cpu", "cpu,0", "cuda:0,auto,cpu,cpu", "auto,cpu", "cuda:0,cuda:,cpu,cpu",
                           "cuda:0,,cpu,cpu", "cpu,cpu,cpu,", ",cpu,cpu,cpu", "cuda:0, cpu,cpu,cpu"}) {
    const std::string text = refusal(Status::invalid_argument, list, four);
    EXPECT_NE(std::string::npos, text.find(std::string("\"") + list + "\": expected auto, cpu")) << text;
  }
  for (const char* list : {"cuda:0,cpu", "cpu,cpu,cpu", "cuda:0,cuda:1,cpu,cpu,cpu"}) {
    const std::string text = refusal(Status::invalid_argument, list, four);
    EXPECT_NE(std::string::npos, text.find("devices for 4 ranks")) << text;
  }
  EXPECT_NE(std::string::npos,
            refusal(Status::invalid_argument, "cuda:0,cuda:2,cpu,cpu", four).find("\"cuda:2\" is not here"));
  EXPECT_NE(std::string::npos, refusal(Status::no_resource, "cuda:0,cpu,cuda:0,cpu", four).find("rank 2"));
}

TEST(ChooseGpu, RanksMayBeToldDifferentThings) {
  EXPECT_EQ((std::vector{0, -1, 0}), gpus(with_choices(threads(3, {"a"}), {"cuda:0", "cpu", "auto"})));
  EXPECT_EQ((std::vector{0, -1, -1}), gpus(with_choices(processes(3, {"a"}), {"cuda:0", "cpu", "auto"})))
      << "what was asked for goes first";
}

TEST(ChooseReachingGpu, IsOneThatARankHasInTurn) {
  const Inventories four = processes(4, {"a", "b", "c"});
  const std::vector<std::string> owned = {"c", "b", "", ""};
  EXPECT_EQ(2, choose_reaching_gpu(2, four, owned));
  EXPECT_EQ(1, choose_reaching_gpu(3, four, owned));
  EXPECT_EQ(-1, choose_reaching_gpu(2, four, {"", "", "", ""})) << "no rank has a GPU";
  Inventories partly = four;
  partly[2].gpus = {"b"};
  partly[3].gpus.clear();
  EXPECT_EQ(0, choose_reaching_gpu(2, partly, owned));
  EXPECT_EQ(-1, choose_reaching_gpu(3, partly, owned)) << "this process sees no GPU";
}

TEST(NearCores, AreReadFromTheKernelsLists) {
  EXPECT_EQ((std::vector{0, 1, 2, 3, 8}), cores_in("0-3,8\n"));
  EXPECT_EQ(std::vector{5}, cores_in("5"));
  for (const char* none : {"", "\n", "3-", "-3", "4-2", "1,,2", "1,x", "0-99999"})
    EXPECT_EQ(std::vector<int>(), cores_in(none)) << none;
}

TEST(NearCores, AreNoneWithoutAGpu) {
  if (built_with_cuda()) GTEST_SKIP() << "this build may have GPUs";
  EXPECT_TRUE(cores_near_gpu(0).cores.empty());
  EXPECT_EQ("this build has no CUDA", cores_near_gpu(0).reason);
}

TEST(HostDevice, HasANameAndMemory) {
  const Device device = host_device();
  EXPECT_FALSE(device.is_gpu());
  EXPECT_EQ(-1, device.index);
  EXPECT_FALSE(device.name.empty());
  EXPECT_GT(device.memory_bytes, 0u);
}

}  // namespace

}  // namespace beeline
