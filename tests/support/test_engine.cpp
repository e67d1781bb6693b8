// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_engine.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "tests/support/change_word.hpp"

namespace beeline_test {

using namespace beeline;

namespace {

/// That of a host rank: each command is over when it has begun.
class HostWorker final : public CommandWorker {
 public:
  void move(const Command& command, std::byte* remote) override {
    auto* local = reinterpret_cast<std::byte*>(command.local);
    for (std::uint64_t row = 0; row < command.rows; ++row) {
      std::byte* const there = remote + row * command.remote_stride;
      std::byte* const here = local + row * command.local_stride;
      if (command.verb == Verb::put)
        std::memcpy(there, here, command.row_bytes);
      else
        std::memcpy(here, there, command.row_bytes);
    }
  }
  void change(const Command& command, std::byte* remote, std::size_t slot) override {
    results_[slot] = change_word(command, remote);
  }
  bool over() override { return true; }
  std::uint64_t result(std::size_t slot) const override { return results_[slot]; }

 private:
  std::array<std::uint64_t, engine_batch> results_{};
};

class TestEngine final : public Engine {
 public:
  TestEngine(EnginePlan plan, int rank) : plan_(std::move(plan)), rank_(rank) {}
  ~TestEngine() override {
    stops_ = true;
    if (thread_.joinable()) thread_.join();
  }
  PeerRoute route_to(int peer) const override {
    if (peer == plan_.direct_peer || rank_ == plan_.direct_peer) return {};
    return {peer == plan_.refused_peer ? Way::refused : Way::engine, plan_.reason};
  }
  void serve(const EngineClient& client) override {
    client_ = client;
    if (client.device.is_gpu())
      worker_ = make_gpu_worker(client);
    else
      worker_ = std::make_unique<HostWorker>();
    for (CommandRing* ring : client.rings) readers_.push_back({CommandReader(*ring), 0});
    thread_ = std::thread([this] { run(); });
  }

 private:
  struct Served {
    CommandReader reader;
    std::uint64_t commands;
  };

  void run() {
    try {
      for (std::uint32_t idle = 0; !stops_;) {
        bool any = false;
        for (Served& each : readers_) any = serve_some(each) || any;
        idle = any ? 0 : idle + 1;
        if (plan_.pause_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(plan_.pause_us));
        if (idle > 0) std::this_thread::yield();
        if (idle > 1000) std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    } catch (const std::exception& error) {
      client_.fail(error.what());
    }
  }

  /// The commands that a ring has, up to a batch.
  bool serve_some(Served& served) {
    if (plan_.gate != nullptr && !*plan_.gate) return false;
    std::size_t count = 0;
    for (; count < engine_batch && served.commands < plan_.stuck_after; ++count, ++served.commands) {
      if (!served.reader.take(batch_[count])) break;
      begin(batch_[count], count);
    }
    if (count == 0) return false;
    while (!worker_->over())
      if (stops_) return false;
    for (std::size_t i = 0; i < count; ++i)
      if (batch_[i].answers) served.reader.answer(batch_[i], worker_->result(i));
    served.reader.release_sources(batch_[count - 1]);
    served.reader.complete(batch_[count - 1]);
    return true;
  }
  void begin(const Command& command, std::size_t slot) {
    std::byte* const remote = client_.address_of(command.peer, command.remote);
    if (plan_.ns_per_byte > 0 && command.width == 0)
      std::this_thread::sleep_for(std::chrono::nanoseconds(plan_.ns_per_byte) * command.rows * command.row_bytes);
    if (command.width == 0)
      worker_->move(command, remote);
    else
      worker_->change(command, remote, slot);
  }

  const EnginePlan plan_;
  const int rank_;
  EngineClient client_;
  std::unique_ptr<CommandWorker> worker_;
  std::vector<Served> readers_;
  std::array<Command, engine_batch> batch_{};
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Engine> TestEngines::make(int rank, const std::vector<Device>&) const {
  return std::make_unique<TestEngine>(plan_, rank);
}

}  // namespace beeline_test
