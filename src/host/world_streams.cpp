// SPDX-License-Identifier: Apache-2.0
#include "host/world_streams.hpp"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "core/fork.hpp"

namespace beeline {

/// Those that were handed out and not destroyed. It outlives the world, for their destructors.
struct WorldStreams::Living {
  std::mutex mutex;
  std::set<Handed*> streams;
};

/// Passes all calls on.
class WorldStreams::Handed final : public Stream {
 public:
  Handed(std::unique_ptr<Stream> own, std::shared_ptr<Living> living)
      : device_(own->device()), own_(own.release()), living_(std::move(living)) {
    const std::lock_guard lock(living_->mutex);
    living_->streams.insert(this);
  }
  ~Handed() override {
    if (!own_.get_deleter().is_own()) return;  // the mutex may be held by a thread of the parent
    const std::lock_guard lock(living_->mutex);
    living_->streams.erase(this);
  }
  void end() { own_.reset(); }

  const Device& device() const override { return device_; }
  void copy(void* destination, const void* source, std::size_t bytes) override {
    own().copy(destination, source, bytes);
  }
  void fill(void* destination, unsigned char value, std::size_t bytes) override {
    own().fill(destination, value, bytes);
  }
  void write_signal(std::uint64_t* signal, std::uint64_t value) override { own().write_signal(signal, value); }
  void write_signals(const SignalWrite& first, const SignalWrite& second) override {
    own().write_signals(first, second);
  }
  void wait_signal(std::uint64_t* signal, std::uint64_t value) override { own().wait_signal(signal, value); }
  bool holds_signal_waits() override { return own().holds_signal_waits(); }
  void release_waits() override { own().release_waits(); }
  std::unique_ptr<Event> make_event() override { return own().make_event(); }
  void record(Event& event) override { own().record(event); }
  void wait_event(Event& event) override { own().wait_event(event); }
  bool drained() const noexcept override { return own_ == nullptr || own_->drained(); }
  bool sleep_until_drained(std::int64_t longest_ns) override { return own().sleep_until_drained(longest_ns); }
  bool idle() override { return own().idle(); }
  void* native() const override { return own().native(); }
  void enqueue(std::function<void()> work) override { own().enqueue(std::move(work)); }
  bool begin_here() override { return own().begin_here(); }
  void end_here() override { own().end_here(); }
  HostWorkers* workers() override { return own().workers(); }
  GridState* grid_state() const override { return own().grid_state(); }
  LaunchedTeams& launched_teams() override { return own().launched_teams(); }
  std::uint64_t capture() const override { return own().capture(); }
  void keep_with_graph(std::shared_ptr<void> held) override { own().keep_with_graph(std::move(held)); }

 private:
  [[nodiscard]] Stream& own() const {
    require(own_ != nullptr, Status::invalid_argument, "the world of this stream has ended");
    return *own_;
  }

  const Device device_;
  detail::ProcessOwned<Stream> own_;
  const std::shared_ptr<Living> living_;
};

WorldStreams::WorldStreams() : living_(std::make_shared<Living>()) {}
WorldStreams::~WorldStreams() = default;

std::unique_ptr<Stream> WorldStreams::hand_out(std::unique_ptr<Stream> own) {
  return std::make_unique<Handed>(std::move(own), living_);
}

template <class Action>
void WorldStreams::for_each(const Action& action) const {
  const std::lock_guard lock(living_->mutex);
  for (Handed* stream : living_->streams) action(*stream);
}

bool WorldStreams::drained() const {
  bool all = true;
  for_each([&all](const Handed& stream) { all = all && stream.drained(); });
  return all;
}

void WorldStreams::release_waits() {
  for_each([](Handed& stream) { stream.release_waits(); });
}

void WorldStreams::drop_results() {
  for_each([](Handed& stream) {
    try {
      static_cast<void>(stream.idle());
    } catch (const Error& error) {
      log(LogLevel::info, fmt::format("work of a stream: {}", error.what()));
    }
    stream.launched_teams().forget();
  });
}

void WorldStreams::end() {
  for_each([](Handed& stream) { stream.end(); });
}

}  // namespace beeline
