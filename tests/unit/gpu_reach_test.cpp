// SPDX-License-Identifier: Apache-2.0
// A host rank's stream beside GPU memory: another stream carries out its work there, in order.
#include "transport/gpu_reach.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "beeline/device/wait.hpp"
#include "lone_context.hpp"
#include "transport/bounce_stream.hpp"
#include "transport/host_stream.hpp"

namespace beeline {

namespace {

/// Stands for a GPU's stream: counts its operations, and carries them out slowly.
class CountingStream final : public Stream {
 public:
  CountingStream(std::unique_ptr<Stream> inner, std::atomic<int>& count) : inner_(std::move(inner)), count_(count) {}
  const Device& device() const override { return inner_->device(); }
  void copy(void* destination, const void* source, std::size_t bytes) override {
    note();
    inner_->copy(destination, source, bytes);
  }
  void fill(void* destination, unsigned char value, std::size_t bytes) override {
    note();
    inner_->fill(destination, value, bytes);
  }
  void write_signal(std::uint64_t* signal, std::uint64_t value) override {
    note();
    inner_->write_signal(signal, value);
  }
  void wait_signal(std::uint64_t* signal, std::uint64_t value) override { inner_->wait_signal(signal, value); }
  bool holds_signal_waits() override { return inner_->holds_signal_waits(); }
  void release_waits() override { inner_->release_waits(); }
  std::unique_ptr<Event> make_event() override { return inner_->make_event(); }
  void record(Event& event) override { inner_->record(event); }
  void wait_event(Event& event) override { inner_->wait_event(event); }
  bool drained() const noexcept override { return inner_->drained(); }
  bool sleep_until_drained(std::int64_t longest_ns) override { return inner_->sleep_until_drained(longest_ns); }
  bool idle() override { return inner_->idle(); }
  void* native() const override { return nullptr; }
  void enqueue(std::function<void()> work) override { inner_->enqueue(std::move(work)); }
  GridState* grid_state() const override { return nullptr; }
  LaunchedTeams& launched_teams() override { return inner_->launched_teams(); }

 private:
  void note() {
    ++count_;
    inner_->enqueue([] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
  }
  std::unique_ptr<Stream> inner_;
  std::atomic<int>& count_;
};

class ReachedGpu : public LoneContext {
 protected:
  [[nodiscard]] std::unique_ptr<Stream> make(const GpuReach* reach = nullptr) {
    return make_host_stream(host_device(), context_, std::make_shared<GridState>(), reach);
  }
  [[nodiscard]] bool is_gpu_memory(const void* address) const {
    const auto* word = static_cast<const std::uint64_t*>(address);
    return word >= gpu_.data() && word < gpu_.data() + gpu_.size();
  }
  [[nodiscard]] GpuReach reach(std::unique_ptr<Stream> stream) {
    return {[this](const void* address) { return is_gpu_memory(address); }, std::move(stream)};
  }

  std::vector<std::uint64_t> gpu_ = std::vector<std::uint64_t>(1000), host_ = gpu_, other_ = gpu_;
  std::atomic<int> count_{0};
};

TEST_F(ReachedGpu, ServesWhatCpuThreadsCannotTouchInOrder) {
  const GpuReach reached = reach(std::make_unique<CountingStream>(make(), count_));
  const auto stream = make(&reached);
  const std::size_t bytes = gpu_.size() * sizeof(std::uint64_t);
  stream->fill(host_.data(), 3, bytes);
  stream->copy(gpu_.data(), host_.data(), bytes);  // each needs the result of the previous one
  stream->fill(host_.data(), 0, bytes);
  stream->fill(gpu_.data(), 4, sizeof(std::uint64_t));
  stream->copy(other_.data(), gpu_.data(), bytes);
  stream->copy(host_.data(), other_.data(), bytes);
  stream->write_signal(gpu_.data() + 5, 77);
  while (!stream->drained()) std::this_thread::yield();
  EXPECT_TRUE(stream->idle());
  EXPECT_EQ(4, count_.load());
  EXPECT_EQ(0x0404040404040404u, host_.front());
  EXPECT_EQ(0x0303030303030303u, host_.back());
  EXPECT_EQ(77u, gpu_[5]);
}

/// The engine reads and writes neither end in GPU memory, whose bytes pass through a buffer, piece by piece.
TEST_F(ReachedGpu, IsBeyondTheEngineThatReachesOtherNodes) {
  const GpuReach reached = reach(std::make_unique<CountingStream>(make(), count_));
  std::vector<std::uint64_t> on_other_node(gpu_.size());
  const std::size_t bytes = gpu_.size() * sizeof(std::uint64_t);
  std::vector<std::byte> buffer(3000);
  int carried = 0;
  StreamRoutes routes;
  routes.route_to = [&](const void* address) {
    const auto* word = static_cast<const std::uint64_t*>(address);
    const bool is_there = word >= on_other_node.data() && word < on_other_node.data() + on_other_node.size();
    return Route{is_there ? RouteKind::engine : RouteKind::direct};
  };
  routes.is_beyond_engine = [&](const void* address) { return reached.needed({address}); };
  routes.carry_buffer = [&](const Stream&) { return std::span(buffer); };
  routes.copy_by_engine = [&](Stream& own, void* to, const void* from, std::size_t count) {
    EXPECT_FALSE(is_gpu_memory(to) || is_gpu_memory(from));
    ++carried;
    own.enqueue([=] { std::memcpy(to, from, count); });
  };
  const auto stream = make_bounce_stream(make(&reached), routes);
  for (std::size_t i = 0; i < gpu_.size(); ++i) gpu_[i] = i;
  stream->copy(on_other_node.data(), gpu_.data(), bytes);
  stream->fill(gpu_.data(), 0, bytes);
  stream->copy(gpu_.data(), on_other_node.data(), bytes);
  EXPECT_EQ(6, carried);
  stream->copy(on_other_node.data(), host_.data(), bytes);
  EXPECT_EQ(7, carried);
  while (!stream->drained()) std::this_thread::yield();
  EXPECT_TRUE(stream->idle());
  EXPECT_EQ(7, count_.load());
  for (std::size_t i = 0; i < gpu_.size(); ++i) EXPECT_EQ(i, gpu_[i]);
  EXPECT_EQ(host_, on_other_node);
}

TEST_F(ReachedGpu, IsRefusedWhereTheProcessSeesNone) {
  const GpuReach blind = reach(nullptr);
  const auto stream = make(&blind);
  const auto refusal = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(Status::unreachable, error.code());
      return error.what();
    }
    return "nothing was refused";
  };
  for (const std::string& text :
       {refusal([&] { stream->copy(gpu_.data(), host_.data(), 8); }),
        refusal([&] { stream->copy(host_.data(), gpu_.data() + 999, 8); }),
        refusal([&] { stream->fill(gpu_.data(), 1, 8); }), refusal([&] { stream->write_signal(gpu_.data(), 1); })})
    EXPECT_NE(std::string::npos, text.find("sees no GPU of the world")) << text;
  host_.front() = 5;
  stream->copy(other_.data(), host_.data(), 8);
  while (!stream->drained()) std::this_thread::yield();
  EXPECT_EQ(5u, other_.front());
  EXPECT_EQ(0u, gpu_.front());
}

TEST_F(ReachedGpu, AWaitForItEndsWithTheWorld) {
  auto inner = make();
  std::atomic<bool> release{false};
  inner->enqueue([&] {
    while (!release) std::this_thread::yield();
  });
  const GpuReach reached = reach(std::make_unique<CountingStream>(std::move(inner), count_));
  const auto stream = make(&reached);
  stream->copy(gpu_.data(), host_.data(), 8);
  detail::SystemAtomic<std::uint64_t>(abort_words_[0]).store(abort_word(0), std::memory_order_release);
  while (!stream->drained()) std::this_thread::yield();
  EXPECT_THROW(static_cast<void>(stream->idle()), Error);
  release = true;
}

}  // namespace

}  // namespace beeline
