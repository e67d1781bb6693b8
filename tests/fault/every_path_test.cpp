// SPDX-License-Identifier: Apache-2.0
// Every means of communication under delays, beside strangers that know no token or speak another version, and with
// memory that is freed while data are in flight to it.
#include "tests/fault/every_path.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "beeline/runtime/file_descriptor.hpp"
#include "runtime/rendezvous_protocol.hpp"
#include "runtime/socket.hpp"
#include "tests/support/random.hpp"
#include "tests/support/split_nodes.hpp"

namespace beeline_test::every_path_test {

namespace {

using namespace beeline;
using namespace std::chrono_literals;

constexpr int ranks = 5, nodes = 3;

Config config_of(const std::string& transports) {
  Config config = split_config(20'000'000'000, transports);
  config.split_nodes = nodes;
  config.heap_bytes = std::size_t{64} << 20;
  return config;
}

/// The first bytes on a connection of the sockets transport, defined again: a change of the format must be noticed.
struct Introduction {
  std::array<std::byte, 16> secret{};
  std::uint32_t from = 0, to = 0;
};

template <class T>
void append(std::vector<std::byte>& bytes, const T& value) {
  const auto all = std::as_bytes(std::span(&value, 1));
  bytes.insert(bytes.end(), all.begin(), all.end());
}

/// The greeting of a rank to the rendezvous server.
std::vector<std::byte> hello_of(const std::string& token, int version_ahead) {
  detail::FrameHeader header{.type = detail::FrameType::hello, .rank = 1, .number = ranks, .bytes = token.size()};
  header.version = static_cast<std::uint16_t>(header.version + version_ahead);
  std::vector<std::byte> hello;
  append(hello, header);
  const auto text = std::as_bytes(std::span(token));
  hello.insert(hello.end(), text.begin(), text.end());
  return hello;
}

std::vector<std::byte> introduction_to(int rank) {
  std::vector<std::byte> bytes;
  append(bytes, Introduction{{}, 0, static_cast<std::uint32_t>(rank)});
  bytes.resize(bytes.size() + 200);
  return bytes;
}

/// Processes that are no ranks of the world, as far as its ports show: they connect, speak and leave.
class Strangers {
 public:
  explicit Strangers(const Config& config)
      : server_(config.rendezvous),
        random_("strangers"), speeches_{pattern(random_.next(), 300),
                                        hello_of(std::string(config.token.size(), 'x'), 0), hello_of(config.token, 1),
                                        introduction_to(config.rank)} {}

  /// One visit at each port at which this process listens, and at the rendezvous server.
  void visit() {
    const std::vector<std::byte>& speech = speeches_[visits_ % speeches_.size()];
    for (int descriptor = 3; descriptor < 256; ++descriptor) {
      int listens = 0;
      socklen_t bytes = sizeof listens;
      sockaddr_in address{};
      socklen_t address_bytes = sizeof address;
      if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0 || listens == 0 ||
          ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &address_bytes) != 0 ||
          address.sin_family != AF_INET)
        continue;
      const FileDescriptor stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(stranger.get(), reinterpret_cast<const sockaddr*>(&address), address_bytes) == 0)
        say(stranger, speech);
    }
    say(detail::connect_tcp(server_, detail::Deadline(5'000'000'000)), speech);
    ++visits_;
  }
  /// Whether each speech was held.
  [[nodiscard]] bool have_said_all() const { return visits_ >= speeches_.size(); }

 private:
  static void say(const FileDescriptor& socket, const std::vector<std::byte>& speech) {
    static_cast<void>(!::send(socket.get(), speech.data(), speech.size(), MSG_NOSIGNAL));
  }

  const std::string server_;
  Random random_;
  const std::vector<std::vector<std::byte>> speeches_;
  std::atomic<std::size_t> visits_{0};
};

/// Late and reordered messages, and strangers at the ports, change no result.
TEST(EveryPath, EnduresDelaysAndStrangers) {
  SKIP_WITHOUT("sockets");
  expect_all_passed(run_processes(
      ranks,
      [](const Config& config) {
        const std::unique_ptr<World> world = World::create(config);
        Strangers strangers(config);
        {
          const std::jthread visitors([&strangers](const std::stop_token& end) {
            for (; !end.stop_requested(); std::this_thread::sleep_for(1ms)) strangers.visit();
          });
          EveryObject use(*world);
          for (int round = 0; round < 3; ++round) use_every_path(use, "under delays");
        }
        BEELINE_CHECK(strangers.have_said_all());
        world->barrier();
      },
      config_of("sockets:delay_us=200:reorder"), 60));
}

/// Objects that are destroyed while data are in flight to them, which nobody received, leave nothing to those that are
/// made after them in the same memory.
TEST(EveryPath, EnduresObjectsThatEndWithDataInFlight) {
  SKIP_WITHOUT("sockets");
  expect_all_passed(run_processes(
      ranks,
      [](const Config& config) {
        const std::unique_ptr<World> world = World::create(config);
        for (int round = 0; round < 2; ++round) {
          std::optional<EveryObject> use(std::in_place, *world);
          send_in_vain(*use);
          use.reset();
          use.emplace(*world);
          use_every_path(*use, "after objects with data in flight");
          world->barrier();
        }
      },
      config_of("sockets:delay_us=2000"), 60));
}

}  // namespace

}  // namespace beeline_test::every_path_test
