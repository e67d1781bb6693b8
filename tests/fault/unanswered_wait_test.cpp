// SPDX-License-Identifier: Apache-2.0
// A wait without an answer ends soon after its deadline, with an error that names what it waited for.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/stopwatch.hpp"

namespace beeline_test::unanswered_wait_test {

namespace {

using namespace beeline;

constexpr double deadline_s = 1.5;

/// Objects that both ranks create together; rank 0 then waits on them in vain.
struct Scene {
  explicit Scene(World& in)
      : world(in), before(in, 64), signals(in, 8), rings(in, 64, 2), staged(in, 1000, 1), data(in, 100'000) {
    const std::uint64_t initial = 3;
    world.copy(signals.data(), &initial, sizeof initial);
    world.barrier();
  }
  World& world;
  Signals before;  ///< so that `signals` are not at the heap's start
  Signals signals;
  PacketRings rings;
  StagedChannel staged;
  SymmetricArray<std::byte> data;
};

enum class Wait { nothing, signal, any_signal, barrier, packet_receive, packet_send, grid };

struct WaitKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Wait wait_for, std::uint64_t* signals,
                                      PacketChannel channel) const {
    const auto& block = grid.block();
    if (wait_for == Wait::grid && grid.block_rank() == 0) static_cast<void>(grid.sync(ctx));
    if (wait_for == Wait::grid || grid.block_rank() != 0) return;
    if (wait_for == Wait::signal) static_cast<void>(wait(block, ctx, signals, Compare::equal, 5, 1));
    if (wait_for == Wait::barrier) static_cast<void>(barrier(block, ctx));
    if (wait_for == Wait::any_signal && block.thread_rank() == 0) {
      std::uint32_t index = 0;
      static_cast<void>(wait_any(ctx, signals + 1, 4, index));
    }
    if (wait_for == Wait::packet_receive || wait_for == Wait::packet_send) {
      PacketPort port(block, ctx, channel, 1);
      std::uint64_t word = 0;
      const bool receives = wait_for == Wait::packet_receive;
      for (int i = 0; i < 3; ++i)
        if ((receives ? port.receive(&word, sizeof word) : port.send(&word, sizeof word)) != Status::ok) return;
    }
  }
};

void launch_on(Stream& stream, Scene& scene, Wait wait_for) {
  LaunchOptions options;
  options.blocks = wait_for == Wait::grid ? 2 : 1;
  options.threads = 64;
  options.waits = true;
  options.stream = &stream;
  launch(scene.world, options, WaitKernel{}, wait_for, scene.signals.data(), scene.rings.channel());
}

void wait_in_kernel(Scene& scene, Wait wait_for) {
  launch_on(scene.world.stream(), scene, wait_for);
  scene.world.synchronize();
}

struct Unanswered {
  const char* name;
  void (*wait)(Scene&);
  const char* message;      ///< on a host rank, and on a GPU unless `gpu_message` says otherwise
  const char* gpu_message;  ///< nullptr: the same message
};

void wait_on_stream(Scene& scene) {
  scene.world.stream().wait_signal(scene.signals.data(), 5);
  scene.world.synchronize();
}

void wait_on_stream_for_peer(Scene& scene) {
  wait_on_stream(scene.world, {.signal = scene.signals.data(), .value = 5, .peer = 1});
  scene.world.synchronize();
}

void wait_on_own_stream(Scene& scene) {
  const std::unique_ptr<Stream> stream = scene.world.make_stream();
  stream->wait_signal(scene.signals.data(), 5);
  scene.world.synchronize(*stream);
}

/// A stream whose own kernels succeeded waits for an event of another stream whose kernel does not end.
void wait_in_kernel_before_event(Scene& scene, bool for_event) {
  const std::unique_ptr<Stream> stream = scene.world.make_stream();
  launch_on(*stream, scene, Wait::nothing);
  scene.world.synchronize(*stream);
  launch_on(scene.world.stream(), scene, Wait::signal);
  const std::unique_ptr<Event> event = scene.world.stream().make_event();
  scene.world.stream().record(*event);
  stream->wait_event(*event);
  if (for_event)
    scene.world.synchronize(*event);
  else
    scene.world.synchronize(*stream);
}

const std::vector<Unanswered>& unanswered_waits() {
  static const std::vector<Unanswered> waits = {
      {"Signal", [](Scene& scene) { wait_in_kernel(scene, Wait::signal); },
       "rank 0: wait on rank 1 in kernel beeline_test::unanswered_wait_test::WaitKernel"
       ": expected == 5, observed 3",
       nullptr},
      {"AnySignal", [](Scene& scene) { wait_in_kernel(scene, Wait::any_signal); },
       "rank 0: wait_any on any rank in kernel beeline_test::unanswered_wait_test::WaitKernel"
       ", 4 signals: expected != 0, observed 0",
       nullptr},
      {"KernelBarrier", [](Scene& scene) { wait_in_kernel(scene, Wait::barrier); },
       "rank 0: barrier on rank 1 in kernel beeline_test::unanswered_wait_test::WaitKernel"
       ", sequence 1: expected >= 1, observed 0",
       nullptr},
      {"PacketReceive", [](Scene& scene) { wait_in_kernel(scene, Wait::packet_receive); },
       "rank 0: packet_receive on rank 1 in kernel beeline_test::unanswered_wait_test::WaitKernel"
       ", sequence 1: expected == 1, observed 0",
       nullptr},
      {"PacketSend", [](Scene& scene) { wait_in_kernel(scene, Wait::packet_send); },
       "rank 0: packet_send on rank 1 in kernel beeline_test::unanswered_wait_test::WaitKernel"
       ", sequence 3: expected >= 1, observed 0",
       nullptr},
      {"GridSync", [](Scene& scene) { wait_in_kernel(scene, Wait::grid); },
       "rank 0: grid_sync in kernel beeline_test::unanswered_wait_test::WaitKernel"
       ", sequence 1: expected >= 1, observed 0",
       nullptr},
      {"HostBarrier", [](Scene& scene) { scene.world.barrier(); }, "rank 0: barrier on rank 1, sequence ", nullptr},
      {"StagedReceive", [](Scene& scene) { scene.staged.receive(scene.data.data(), 100, 1); },
       "rank 0: staged_receive on rank 1, sequence 0: expected >= 1, observed 0", nullptr},
      {"StagedSend", [](Scene& scene) { scene.staged.send(scene.data.data(), 5000, 1); },
       "rank 0: staged_send on rank 1, sequence 1: expected >= 2, observed 1", nullptr},
      {"Stream", wait_on_stream, "rank 0: wait on any rank: expected >= 5, observed 3",
       "rank 0: stream_synchronize: work on a stream has not ended after 1."},
      {"StreamForPeer", wait_on_stream_for_peer, "rank 0: wait on rank 1: expected >= 5, observed 3",
       "rank 0: stream_synchronize: work on a stream has not ended after 1."},
      {"BeforeEvent", [](Scene& scene) { wait_in_kernel_before_event(scene, true); },
       "rank 0: wait on rank 1 in kernel beeline_test::unanswered_wait_test::WaitKernel"
       ": expected == 5, observed 3",
       nullptr},
      {"BeforeEventOfStream", [](Scene& scene) { wait_in_kernel_before_event(scene, false); },
       "rank 0: wait on rank 1 in kernel beeline_test::unanswered_wait_test::WaitKernel"
       ": expected == 5, observed 3",
       nullptr},
      {"OwnStream", wait_on_own_stream, "rank 0: wait on any rank: expected >= 5, observed 3",
       "rank 0: stream_synchronize: work on a stream has not ended after 1."}};
  return waits;
}

std::string message_of(const Unanswered& unanswered, const World& world) {
  return world.device(0).is_gpu() && unanswered.gpu_message != nullptr ? unanswered.gpu_message : unanswered.message;
}

void wait_in_vain(Scene& scene, const Unanswered& unanswered) {
  const Stopwatch stopwatch;
  try {
    unanswered.wait(scene);
  } catch (const Error& error) {
    const double excess = stopwatch.seconds() - deadline_s;
    std::fputs(join("  ", unanswered.name, ": error ", excess, " s after the deadline of ", deadline_s, " s, ",
                    allowed_excess(deadline_s), " s are allowed, ", scheduling_slack_s, " s more for a busy machine\n")
                   .c_str(),
               stdout);
    const std::string message = message_of(unanswered, scene.world);
    BEELINE_CHECK_CONTAINS(error.what(), message);
    if (message.find(": wait on ") != std::string::npos)
      BEELINE_CHECK_CONTAINS(error.what(), join(" at offset 0x200 of its own ",
                                                scene.world.mixed() ? "pinned" : "symmetric", " heap, after 1."));
    BEELINE_CHECK_EQ(std::string(name(Status::deadline)), name(error.code()));
    BEELINE_CHECK_EQ(0, error.rank());
    BEELINE_CHECK(excess >= -0.001);
    BEELINE_CHECK(excess <= allowed_excess(deadline_s) + scheduling_slack_s);
    return;
  }
  throw CheckFailure("the wait ended without an error");
}

/// The rank that is waited for gets the same words in its next call.
void be_the_culprit(Scene& scene, const Unanswered& unanswered) {
  const Stopwatch stopwatch;
  while (!scene.world.failed() && stopwatch.seconds() < 20) usleep(1000);
  try {
    scene.world.barrier();
  } catch (const Error& error) {
    BEELINE_CHECK_EQ(std::string(name(Status::aborted)), name(error.code()));
    const std::string text = error.what(), cause = message_of(unanswered, scene.world);
    BEELINE_CHECK_CONTAINS(text, "aborted: rank 1: because of rank 0: ");
    BEELINE_CHECK_CONTAINS(text, cause);
    BEELINE_CHECK_EQ(text.find(cause), text.rfind(cause));  // it is told once
    return;
  }
  throw CheckFailure("the world went on");
}

/// The devices of the two ranks.
struct Devices {
  const char *name, *choice;
  int gpus;  ///< needed if ranks are processes
};
constexpr Devices all_devices[] = {
    {"Cpu", "cpu", 0}, {"Gpu", "auto", 2}, {"GpuOnCpu", "cuda:0,cpu", 1}, {"CpuOnGpu", "cpu,cuda:0", 1}};

struct Parameter {
  WorldKind kind;
  Devices devices;
  std::size_t wait;
};

class UnansweredWait : public ::testing::TestWithParam<Parameter> {};

TEST_P(UnansweredWait, EndsAtItsDeadline) {
  if (GetParam().kind == WorldKind::processes && under_thread_sanitizer)
    GTEST_SKIP() << "ThreadSanitizer sees one process";
  std::string why;
  const Devices& devices = GetParam().devices;
  if (devices.gpus > 0 && gpus_here(&why) == 0) GTEST_SKIP() << "no GPU: " << why;
  if (GetParam().kind == WorldKind::processes && gpus_here() < devices.gpus) GTEST_SKIP() << "one GPU, two processes";
  Config config = test_config();
  config.device = devices.choice;
  config.deadline_ns = static_cast<std::int64_t>(deadline_s * 1e9);
  const Unanswered& unanswered = unanswered_waits()[GetParam().wait];
  // The wait of a GPU's stream ends by the host's deadline for streams; every other wait by its own, long before.
  if (devices.gpus > 0 && unanswered.gpu_message != nullptr) config.stream_deadline_ns = config.deadline_ns;
  expect_all_passed(run_ranks(
      GetParam().kind, 2,
      [&](World& world) {
        Scene scene(world);
        if (world.rank() == 0)
          wait_in_vain(scene, unanswered);
        else
          be_the_culprit(scene, unanswered);
      },
      config, 60));
}

/// Processes first: once threads have used CUDA, this process can no longer fork.
std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const Devices& devices : all_devices)
    for (const std::size_t wait : {0, 6, 7}) all.push_back({WorldKind::processes, devices, wait});
  for (const Devices& devices : all_devices)
    for (std::size_t wait = 0; wait < unanswered_waits().size(); ++wait)
      all.push_back({WorldKind::threads, devices, wait});
  return all;
}

std::string parameter_name(const ::testing::TestParamInfo<Parameter>& info) {
  return join(unanswered_waits()[info.param.wait].name, info.param.kind == WorldKind::threads ? "Threads" : "Processes",
              info.param.devices.name);
}

/// Five ranks wait for one rank; the errors of all are one line.
TEST(UnansweredWaits, OfSeveralRanksAreOneLine) {
  Config config = test_config();
  config.device = "cpu";
  config.deadline_ns = 500'000'000;
  const auto body = [](World& world) {
    std::string text;
    try {
      if (world.rank() != 0) world.barrier();
      while (!world.failed()) machine::back_off(0, 0);
      world.check();
    } catch (const Error& error) {
      text = error.what();
    }
    BEELINE_CHECK_CONTAINS(text, ", the longest of these waits: barrier on rank 0, sequence ");
    BEELINE_CHECK(std::count(text.begin(), text.end(), '\n') <= 3);
  };
  expect_all_passed(run_ranks(WorldKind::threads, 6, body, config, 60));
}

INSTANTIATE_TEST_SUITE_P(Waits, UnansweredWait, ::testing::ValuesIn(parameters()), parameter_name);

}  // namespace

}  // namespace beeline_test::unanswered_wait_test
