// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_engine.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "beeline/core/error.hpp"
#include "control/command_check.hpp"
#include "control/host_engine.hpp"

namespace beeline_test {

using namespace beeline;

namespace {

class TestEngine final : public Engine {
 public:
  TestEngine(EnginePlan plan, int rank) : plan_(std::move(plan)), rank_(rank) {}
  ~TestEngine() override {
    stops_ = true;
    if (thread_.joinable()) thread_.join();
  }
  PeerRoute route_to(int peer) const override {
    if (peer == plan_.direct_peer || rank_ == plan_.direct_peer) return {};
    return {peer == plan_.refused_peer ? PeerAccess::refused : PeerAccess::engine, plan_.reason};
  }
  void serve(const EngineClient& client) override {
    client_ = client;
    worker_ = make_worker(client_);
    memory_.emplace(client_);
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

  /// Serves the commands in a ring, up to a batch.
  bool serve_some(Served& served) {
    if (plan_.gate != nullptr && !*plan_.gate) return false;
    std::size_t count = 0;
    while (count < command_batch && served.commands < plan_.stuck_after && served.reader.take(batch_[count]))
      ++count, ++served.commands;
    if (count == 0) return false;
    served.reader.release_slots();
    const Command last = batch_[count - 1];
    if (plan_.reorders) sort_by_peer(count);
    worker_->begin_ring(false, nullptr);
    for (std::size_t i = 0; i < count; ++i) begin(batch_[i], i);
    if (worker_->end_ring(nullptr, 0)) static_cast<void>(worker_->submit());
    while (!worker_->over())
      if (stops_) return false;
    for (std::size_t i = 0; i < count; ++i)
      if (batch_[i].answers) served.reader.answer(batch_[i], worker_->result(i));
    served.reader.release_sources(last);
    served.reader.complete(last);
    return true;
  }
  /// Sorts by peer, the highest first; stable. By insertion: std::stable_sort's buffer is not aligned for commands.
  void sort_by_peer(std::size_t count) {
    const auto is_higher = [](const Command& a, const Command& b) { return a.peer > b.peer; };
    const auto first = batch_.begin();
    for (auto next = first; next != first + count; ++next)
      std::rotate(std::upper_bound(first, next, *next, is_higher), next, next + 1);
  }
  void begin(const Command& command, std::size_t slot) {
    if (plan_.ns_per_byte > 0 && command.width == 0)
      std::this_thread::sleep_for(std::chrono::nanoseconds(plan_.ns_per_byte) * command.rows * command.row_bytes);
    if (const char* const refused = begin_command(client_, *memory_, *worker_, command, slot).refused)
      throw Error(Status::invalid_argument, refused);
  }

  const EnginePlan plan_;
  const int rank_;
  EngineClient client_;
  std::unique_ptr<CommandWorker> worker_;
  std::optional<MappedMemory> memory_;
  std::vector<Served> readers_;
  std::array<Command, command_batch> batch_{};
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace

std::shared_ptr<const EngineMaker> host_engines() {
  return std::make_shared<HostEngines>(EngineOptions{.reason = EnginePlan{}.reason});
}

std::unique_ptr<Engine> TestEngines::make(int rank, const std::vector<Device>&) const {
  return std::make_unique<TestEngine>(plan_, rank);
}

}  // namespace beeline_test
