// SPDX-License-Identifier: Apache-2.0
// Use beside the CUDA runtime in the same process: the current device, memory of CUDA, streams of the program, graphs.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "beeline/hpe/copy.hpp"
#include "beeline/hpe/launch.hpp"
#include "beeline/hpe/memory.hpp"
#include "beeline/hpe/object.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

#if BEELINE_COMPILES_CUDA

#include <cuda_runtime_api.h>

namespace beeline_test {

namespace {

namespace hpe = beeline::hpe;
using namespace hpe;
using beeline::Status;

void require_cuda(cudaError_t result) { BEELINE_CHECK_EQ(std::string("no error"), cudaGetErrorString(result)); }

struct AddToAll {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, std::uint32_t* words, std::size_t count, std::uint32_t what) const {
    for (std::size_t i = grid.thread_rank(); i < count; i += grid.size()) words[i] += what;
  }
};

constexpr std::size_t words = 5000, bytes = words * sizeof(std::uint32_t);

class BesideCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = missing_gpus(1); !why.empty()) GTEST_SKIP() << why;
  }
};

/// Calls that use all devices leave the current device of this thread as it was.
TEST_F(BesideCuda, TheCurrentDeviceStays) {
  const int count = static_cast<int>(Device::gpus().size());
  for (int current = 0; current < count; ++current) {
    std::thread([&] {
      require_cuda(cudaSetDevice(current));
      const auto is_unchanged = [&](const char* after) {
        int now = -1;
        require_cuda(cudaGetDevice(&now));
        EXPECT_EQ(now, current) << after;
      };
      for (const Device device : Device::gpus()) {
        std::vector<std::uint32_t> here(words, 1);
        DeviceMemory memory(device, bytes);
        is_unchanged("DeviceMemory");
        Stream stream(device);
        is_unchanged("Stream");
        stream.fill(memory.data(), 0, bytes);
        hpe::launch(stream, {.blocks = 4}, AddToAll{}, memory.as<std::uint32_t>(), words, 7u);
        is_unchanged("launch");
        hpe::copy(here.data(), memory.data(), bytes, stream);
        is_unchanged("copy");
        stream.synchronize();
        is_unchanged("synchronize");
        EXPECT_EQ(here, std::vector<std::uint32_t>(words, 7));
        hpe::copy(memory.data(), here.data(), bytes);
        is_unchanged("blocking copy");
        static_cast<void>(owner_of(memory.data()));
        static_cast<void>(device.reaches(Device::gpus().back()));
        is_unchanged("reaches");
      }
      is_unchanged("all");
    }).join();
  }
}

/// Each call is the first of a thread, which has no context.
TEST_F(BesideCuda, FirstCallsOfThreads) {
  const auto in_new_thread = [](const std::function<void()>& call) {
    std::thread([&] {
      try {
        call();
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }).join();
  };
  for (const Device device : Device::gpus()) {
    DeviceMemory memory(device, bytes);
    Stream stream(device), other(device), of_host(Device::host(0));
    in_new_thread([&] { stream.fill(memory.data(), 5, bytes); });
    in_new_thread([&] { stream.wait_for(other); });
    in_new_thread([&] { stream.wait_for(of_host); });
    in_new_thread([&] { hpe::launch(stream, {.blocks = 4}, AddToAll{}, memory.as<std::uint32_t>(), words, 1u); });
    in_new_thread([&] { stream.synchronize(); });
    in_new_thread([&] { EXPECT_EQ(owner_of(memory.data()).device, device); });
    std::vector<std::uint32_t> here(words);
    in_new_thread([&] { hpe::copy(here.data(), memory.data(), bytes); });
    EXPECT_EQ(here, std::vector<std::uint32_t>(words, 0x05050506));
    in_new_thread([&] {
      const DeviceMemory more(device, bytes);
      const Stream another(device);
    });
  }
}

/// A thread that never chose a GPU allocates on the first one, whatever this layer has done for it.
TEST_F(BesideCuda, ThreadsWithoutAContextHaveTheFirstGpu) {
  const Device last = Device::gpus().back();
  std::thread([&] {
    const DeviceMemory memory(last, bytes);
    Stream stream(last);
    stream.fill(memory.data(), 0, bytes);
    hpe::launch(stream, {.blocks = 4}, AddToAll{}, memory.as<std::uint32_t>(), words, 1u);
    stream.synchronize();
    int now = -1;
    require_cuda(cudaGetDevice(&now));
    EXPECT_EQ(now, 0);
    void* mine = nullptr;
    require_cuda(cudaMalloc(&mine, bytes));
    EXPECT_EQ(owner_of(mine).device, Device::gpu(0));
    require_cuda(cudaFree(mine));
  }).join();
}

/// The legacy default stream is that of the adopted GPU, not of the thread's current one.
TEST_F(BesideCuda, DefaultStreams) {
  require_cuda(cudaSetDevice(0));
  const Device last = Device::gpus().back();
  const DeviceMemory memory(last, bytes);
  const PinnedMemory pinned(bytes);
  Stream stream = Stream::adopt(last, nullptr);
  for (std::uint32_t round = 1; round <= 20; ++round) {
    hpe::launch(stream, {.blocks = 1, .threads = 32}, AddToAll{}, memory.as<std::uint32_t>(), words, round);
    stream.fill(memory.data(), 0, bytes);
    hpe::launch(stream, {.blocks = 1, .threads = 32}, AddToAll{}, memory.as<std::uint32_t>(), words, round);
    hpe::copy(pinned.data(), memory.data(), bytes, stream);
    stream.synchronize();
    ASSERT_EQ(pinned.as<std::uint32_t>()[words - 1], round);
  }
}

TEST_F(BesideCuda, MemoryOfCuda) {
  const int last = static_cast<int>(Device::gpus().size()) - 1;
  int before = -1;
  require_cuda(cudaGetDevice(&before));
  require_cuda(cudaSetDevice(last));
  void *device = nullptr, *pinned = nullptr, *managed = nullptr;
  require_cuda(cudaMalloc(&device, bytes));
  require_cuda(cudaMallocHost(&pinned, bytes));
  require_cuda(cudaMallocManaged(&managed, bytes));
  require_cuda(cudaSetDevice(before));
  EXPECT_EQ(owner_of(device).memory, Memory::device);
  EXPECT_EQ(owner_of(device).device, Device::gpu(last));
  EXPECT_GE(owner_of(device).bytes, bytes);
  EXPECT_EQ(owner_of(pinned).memory, Memory::pinned);
  EXPECT_EQ(owner_of(managed).memory, Memory::managed);
  const DeviceMemory ours(Device::gpu(0), bytes), of_host(Device::host(1), bytes);
  std::uint32_t seed = 0;
  for (void* to : {device, pinned, managed, static_cast<void*>(ours.data()), static_cast<void*>(of_host.data())})
    for (void* from : {device, pinned, managed, static_cast<void*>(ours.data()), static_cast<void*>(of_host.data())}) {
      const std::vector<std::uint32_t> data(words, ++seed);
      std::vector<std::uint32_t> back(words);
      hpe::copy(from, data.data(), bytes);
      hpe::copy(to, from, bytes);
      hpe::copy(back.data(), to, bytes);
      ASSERT_EQ(back, data) << seed;
    }
  check_error(Status::invalid_argument, {"beyond its allocation"},
              [&] { hpe::copy(pinned, device, owner_of(device).bytes + 1); });
  require_cuda(cudaFree(managed));
  require_cuda(cudaFreeHost(pinned));
  require_cuda(cudaFree(device));
  check_error(Status::invalid_argument, {"belongs to nobody"}, [&] { hpe::copy(ours.data(), device, 8); });
}

TEST_F(BesideCuda, StreamsOfTheProgram) {
  cudaStream_t native = nullptr;
  require_cuda(cudaStreamCreate(&native));
  const DeviceMemory memory(Device::gpu(0), bytes);
  std::vector<std::uint32_t> back(words);
  {
    Stream stream = Stream::adopt(Device::gpu(0), native);
    require_cuda(cudaMemsetAsync(memory.data(), 1, bytes, native));
    hpe::launch(stream, {.blocks = 4}, AddToAll{}, memory.as<std::uint32_t>(), words, 1u);
    hpe::copy(back.data(), memory.data(), bytes, stream);
    stream.synchronize();
  }
  EXPECT_EQ(back, std::vector<std::uint32_t>(words, 0x01010102u));
  if (Device::gpus().size() > 1)
    check_error(Status::invalid_argument, {"GPU 0"}, [&] { static_cast<void>(Stream::adopt(Device::gpu(1), native)); });
  require_cuda(cudaStreamDestroy(native));
}

/// Launches and copies by copy engines become part of a graph. Others are refused, and the capture goes on.
TEST_F(BesideCuda, Graphs) {
  const Device gpu = Device::gpu(0);
  const DeviceMemory memory(gpu, bytes), second(gpu, bytes);
  const PinnedMemory pinned(bytes);
  std::vector<std::uint32_t> pageable(words);
  Stream stream(gpu);
  stream.fill(memory.data(), 0, bytes);
  // Launched once before, since code is loaded at the first launch.
  hpe::launch(stream, {.blocks = 4}, AddToAll{}, memory.as<std::uint32_t>(), words, 0u);
  stream.synchronize();
  const auto native = static_cast<cudaStream_t>(stream.native());
  require_cuda(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal));
  hpe::launch(stream, {.blocks = 4}, AddToAll{}, memory.as<std::uint32_t>(), words, 3u);
  hpe::copy(second.data(), memory.data(), bytes, stream);
  hpe::copy(pinned.data(), second.data(), bytes, stream);
  check_error(Status::unavailable, {"captured"}, [&] { hpe::copy(pageable.data(), memory.data(), bytes, stream); });
  check_error(Status::unavailable, {"captured"}, [&] { hpe::copy(memory.data(), pageable.data(), bytes, stream); });
  check_error(Status::unavailable, {"captured"}, [&] { stream.synchronize(); });
  hpe::copy(pageable.data(), pinned.data(), bytes);  // blocking: beside the capture
  const DeviceMemory more(gpu, 64);
  hpe::copy(more.data(), pageable.data(), 64);
  cudaGraph_t graph = nullptr;
  require_cuda(cudaStreamEndCapture(native, &graph));
  std::size_t nodes = 0;
  require_cuda(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 3u);
  cudaGraphExec_t runs = nullptr;
  require_cuda(cudaGraphInstantiate(&runs, graph, 0));
  for (std::uint32_t run = 1; run <= 3; ++run) {
    require_cuda(cudaGraphLaunch(runs, native));
    stream.synchronize();
    EXPECT_EQ(pinned.as<std::uint32_t>()[words - 1], 3 * run);
  }
  require_cuda(cudaGraphExecDestroy(runs));
  require_cuda(cudaGraphDestroy(graph));
}

/// Objects are not captured; kernels that know their addresses are, and each run of the graph is in a DeviceAccess.
TEST_F(BesideCuda, ObjectsAndGraphs) {
  const Device gpu = Device::gpu(0);
  for (const Protocol protocol : {Protocol::protection, Protocol::tracking, Protocol::managed}) {
    Object<std::uint32_t> object(words, {.device = gpu, .protocol = protocol}), other(words, {.device = gpu});
    Stream stream(gpu);
    const PinnedMemory pinned(bytes);
    hpe::launch(stream, {.blocks = 4}, AddToAll{}, object, words, 0u);  // loads the code
    stream.synchronize();
    const auto native = static_cast<cudaStream_t>(stream.native());
    require_cuda(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal));
    const auto refused = [&](const std::function<void()>& call) {
      check_error(Status::unavailable, {"captured in a graph", "on(device)", "DeviceAccess"}, call);
    };
    refused([&] { hpe::launch(stream, {.blocks = 4}, AddToAll{}, object, words, 1u); });
    refused([&] { hpe::launch(stream, {.blocks = 4}, AddToAll{}, other, words, 1u); });
    refused([&] { const DeviceAccess access(stream, {&object.state(), &other.state()}); });
    refused([&] { hpe::copy(pinned.data(), other.data(), bytes, stream); });
    refused([&] { hpe::copy(other.data(), pinned.data(), bytes, stream); });
    hpe::launch(stream, {.blocks = 4}, AddToAll{}, object.on(gpu), words, 3u);
    cudaGraph_t graph = nullptr;
    require_cuda(cudaStreamEndCapture(native, &graph));
    cudaGraphExec_t runs = nullptr;
    require_cuda(cudaGraphInstantiate(&runs, graph, 0));
    for (std::uint32_t run = 1; run <= 3; ++run) {
      object[run] += 100;
      {
        const DeviceAccess access(stream, {&object.state()});
        require_cuda(cudaGraphLaunch(runs, native));
      }
      if (protocol == Protocol::managed) stream.synchronize();  // managed memory is not acquired
      EXPECT_EQ(object[run], 100 + 3 * run) << name(protocol);
      EXPECT_EQ(object[words - 1], 3 * run) << name(protocol);
    }
    require_cuda(cudaGraphExecDestroy(runs));
    require_cuda(cudaGraphDestroy(graph));
  }
}

/// Neither a capture of this thread nor an object fails.
TEST_F(BesideCuda, ObjectsAreMadeBesideCaptures) {
  const Device gpu = Device::gpu(0);
  Stream stream(gpu);
  for (const Protocol protocol : {Protocol::protection, Protocol::tracking, Protocol::managed}) {
    const auto native = static_cast<cudaStream_t>(stream.native());
    require_cuda(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal));
    {
      const Object<std::uint32_t> object(words, {.device = gpu, .protocol = protocol});
      Stream second(gpu);
      if (protocol != Protocol::managed) hpe::launch(second, {.blocks = 4}, AddToAll{}, object, words, 5u);
      second.synchronize();
      EXPECT_EQ(object[words - 1], protocol != Protocol::managed ? 5u : 0u) << name(protocol);
    }
    cudaGraph_t graph = nullptr;
    require_cuda(cudaStreamEndCapture(native, &graph));
    require_cuda(cudaGraphDestroy(graph));
  }
}

/// A host device's stream follows a GPU's, and the other way round.
TEST_F(BesideCuda, StreamsOfBothKinds) {
  const DeviceMemory memory(Device::gpu(0), bytes);
  const PinnedMemory pinned(bytes);
  Stream of_gpu(Device::gpu(0)), of_host(Device::host());
  auto* const numbers = pinned.as<std::uint32_t>();
  for (std::uint32_t round = 1; round <= 20; ++round) {
    of_host.enqueue([=] {
      std::this_thread::sleep_for(std::chrono::milliseconds(round == 1 ? 20 : 0));
      for (std::size_t i = 0; i < words; ++i) numbers[i] = round;
    });
    of_gpu.wait_for(of_host);
    hpe::copy(memory.data(), numbers, bytes, of_gpu);
    hpe::launch(of_gpu, {.blocks = 1, .threads = 32}, AddToAll{}, memory.as<std::uint32_t>(), words, 7u);
    hpe::copy(numbers, memory.data(), bytes, of_gpu);
    of_host.wait_for(of_gpu);
    of_host.enqueue([=] {
      for (std::size_t i = 0; i < words; ++i) BEELINE_CHECK_EQ(round + 7, numbers[i]);
    });
  }
  of_host.synchronize();
  of_gpu.synchronize();
}

/// The events of waits are used again, also those of a captured stream.
TEST_F(BesideCuda, WaitsAroundCaptures) {
  Stream first(Device::gpu(0)), second(Device::gpu(0)), of_host(Device::host());
  const auto native = static_cast<cudaStream_t>(first.native());
  for (int round = 0; round < 3; ++round) {
    require_cuda(cudaStreamBeginCapture(native, cudaStreamCaptureModeRelaxed));
    second.wait_for(first);
    first.wait_for(second);
    check_error(Status::unavailable, {"a wait for a host device's stream"}, [&] { first.wait_for(of_host); });
    check_error(Status::unavailable, {"captured in a graph"}, [&] { of_host.wait_for(first); });
    cudaGraph_t graph = nullptr;
    require_cuda(cudaStreamEndCapture(native, &graph));
    require_cuda(cudaGraphDestroy(graph));
    second.wait_for(first);
    first.wait_for(of_host);
    of_host.wait_for(second);
    of_host.synchronize();
    first.synchronize();
  }
}

}  // namespace

}  // namespace beeline_test

#endif
