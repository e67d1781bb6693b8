// SPDX-License-Identifier: Apache-2.0
// Messages that fail: a peer that does not call, ends that do not agree. Each ends with an error that names ranks and
// calls; the survivors continue with channels of their own.
#include <gtest/gtest.h>

#include <string>

#include "beeline/beeline.hpp"
#include "beeline/host/messages.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::message_calls_test {

namespace {

using namespace beeline;

constexpr auto bytes_type = ElementType::uint8;
constexpr MessageOptions options{.sessions = 4, .eager_bytes = 1000, .depth = 2, .chunk_bytes = 1024};
constexpr std::size_t most = 20'000;

struct Shape {
  const char* name;
  const char* device;  ///< BEELINE_DEVICE of all ranks
  int gpus;            ///< that are needed
};

class MessageCallsThat : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    std::string why;
    if (const int gpus = GetParam().gpus; gpus > 0 && gpus_here(&why) < gpus)
      GTEST_SKIP() << gpus << " GPUs are needed: " << why;
  }

  /// Runs `body` on two ranks that are threads.
  template <class Body>
  void run(Body body, double deadline_s = 20) {
    Config config = test_config();
    config.device = GetParam().device;
    config.deadline_ns = static_cast<std::int64_t>(deadline_s * 1e9);
    expect_all_passed(run_ranks(WorldKind::threads, 2, body, config));
  }
};

/// The error that `call` or the default stream throws.
template <class Call>
std::string error_of(World& world, Call call) {
  try {
    call();
    world.synchronize();
    while (!world.failed()) machine::back_off(0, 0);
    world.check();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void expect_part(const std::string& text, const std::string& part) {
  if (text.find(part) == std::string::npos) throw CheckFailure("\"" + part + "\" is not in: " + text);
}

/// Rank 0 calls, rank 1 does not answer; then both continue.
template <class Call>
void expect_deadline(World& world, Call call, const char* part) {
  const SymmetricArray<std::byte> memory(world, most);
  Messages messages(world, options);
  const std::string error = error_of(world, [&] {
    if (world.rank() == 0) call(messages, memory.data());
  });
  expect_part(error, part);
  BEELINE_CHECK_EQ(2, world.survivors().size());
  Messages fresh(world, options);
  const int peer = 1 - world.rank();
  fresh.send_receive_on_stream({memory.data(), most / 2, peer}, {memory.data() + most / 2, most / 2, peer}, bytes_type);
  world.synchronize();
}

TEST_P(MessageCallsThat, NobodyAnswersNameThePeer) {
  run(
      [](World& world) {
        expect_deadline(
            world, [](Messages& messages, std::byte* data) { messages.receive_on_stream(data, 8, bytes_type, 1); },
            "rank 0: receive on rank 1 in receive, sequence 1: expected == 1, observed 0");
        expect_deadline(
            world, [](Messages& messages, std::byte* data) { messages.receive_on_stream(data, most, bytes_type, 1); },
            "rank 0: receive on rank 1 in receive, sequence 1: expected == 1, observed 0");
        expect_deadline(
            world, [](Messages& messages, std::byte* data) { messages.send_on_stream(data, most, bytes_type, 1); },
            "rank 0: send on rank 1 in send, sequence 1: expected == 1, observed 0");
        expect_deadline(
            world,
            [](Messages& messages, std::byte* data) {
              for (int i = 0; i < 3; ++i) messages.send_on_stream(data, 8, bytes_type, 1);
            },
            "rank 0: send on rank 1 in send, sequence 3: expected >= 1, observed 0");
        expect_deadline(
            world,
            [](Messages& messages, std::byte* data) {
              messages.send_receive_on_stream({data, 8, 1}, {data + 8, 8, 1}, bytes_type);
            },
            "rank 0: receive on rank 1 in send_receive, sequence 1: expected == 1, observed 0");
      },
      GetParam().gpus == 0 ? 0.5 : 5);  // GPUs take seconds to start
}

/// Rank 0 sends `sent` bytes, rank 1 expects `received`: both get the error.
void expect_difference(World& world, std::size_t sent, std::size_t received, unsigned receiving_blocks,
                       const char* part) {
  const SymmetricArray<std::byte> memory(world, most);
  Messages messages(world, options);
  const std::string error = error_of(world, [&] {
    if (world.rank() == 0)
      messages.send_on_stream(memory.data(), sent, bytes_type, 1, {.blocks = 2});
    else
      messages.receive_on_stream(memory.data(), received, bytes_type, 0, {.blocks = receiving_blocks});
  });
  expect_part(error, part);
  BEELINE_CHECK_EQ(2, world.survivors().size());
}

TEST_P(MessageCallsThat, DifferAreFound) {
  run([](World& world) {
    expect_difference(world, 200, 100, 2, "rank 1 receives 100 bytes in 2 blocks, rank 0 sends 200 bytes in 2 blocks");
    expect_difference(world, 0, 1000, 2, "rank 1 receives 1000 bytes in 2 blocks, rank 0 sends 0 bytes in 2 blocks");
    expect_difference(world, 1000, most, 2, "rank 1 receives 20000 bytes in 2 blocks, rank 0 sends 1000 bytes");
    expect_difference(world, most, 0, 2, "rank 1 receives 0 bytes in 2 blocks, rank 0 sends 20000 bytes");
    expect_difference(world, most, most - 1, 2, "rank 1 receives 19999 bytes in 2 blocks, rank 0 sends 20000 bytes");
    expect_difference(world, 500, 500, 1, "rank 1 receives 500 bytes in 1 block, rank 0 sends 500 bytes in 2 blocks");
  });
}

TEST_P(MessageCallsThat, HaveOtherTypesAreFound) {
  run([](World& world) {
    const SymmetricArray<float> floats(world, 50);
    const SymmetricArray<std::int32_t> integers(world, 50);
    const SymmetricArray<std::byte> bytes(world, 200);
    Messages messages(world, options);
    const std::string error = error_of(world, [&] {
      if (world.rank() == 0) {
        messages.send(floats, 1);
        messages.send(floats, 1);
      } else {
        messages.receive(bytes, 0);  // fit all
        messages.receive(integers, 0);
      }
    });
    expect_part(error, "rank 1 receives 200 bytes of int32 in 1 block, rank 0 sends 200 bytes of float32 in 1 block");
    BEELINE_CHECK_EQ(2, world.survivors().size());
  });
}

/// A record's sequence number is the message's number here, and elsewhere marks a refusal: no number is taken for that.
TEST_P(MessageCallsThat, DifferAreFoundWhateverTheirNumber) {
  run([](World& world) {
    const SymmetricArray<std::byte> memory(world, most);
    for (std::uint32_t number = 1; number <= 16; ++number) {
      MessageOptions late = options;
      late.first_message = number - 1;
      Messages messages(world, late);
      const std::string error = error_of(world, [&] {
        if (world.rank() == 0)
          messages.send_on_stream(memory.data(), 200, bytes_type, 1);
        else
          messages.receive_on_stream(memory.data(), 100, bytes_type, 0);
      });
      expect_part(error, "rank 1 receives 100 bytes");
      BEELINE_CHECK_EQ(2, world.survivors().size());
    }
  });
}

TEST(Messages, AreNotToBeHadWhereKernelsDoNotReachEachOther) {
  Config config = test_config();
  config.device = "cpu";
  config.peer_access = false;
  expect_all_passed(run_ranks(
      WorldKind::threads, 2,
      [](World& world) {
        check_error(Status::unavailable, {"kernels of rank 0 do not reach the memory of rank 1"},
                    [&] { const Messages messages(world); });
      },
      config));
}

INSTANTIATE_TEST_SUITE_P(Devices, MessageCallsThat,
                         ::testing::Values(Shape{"cpus", "cpu", 0}, Shape{"one_gpu", "cuda:0", 1},
                                           Shape{"two_gpus", "cuda:0,cuda:1", 2},
                                           Shape{"cpu_and_gpu", "cpu,cuda:0", 1}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace

}  // namespace beeline_test::message_calls_test
