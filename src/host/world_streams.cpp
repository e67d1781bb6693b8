// SPDX-License-Identifier: Apache-2.0
#include "host/world_streams.hpp"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "core/fork.hpp"
#include "transport/forwarding_stream.hpp"

namespace beeline {

/// The streams that were handed out and not destroyed. This set outlives the world, since their destructors use it.
struct WorldStreams::Living {
  std::mutex mutex;
  std::set<Handed*> streams;
};

/// The program's stream object, which forwards all calls to `own_`.
class WorldStreams::Handed final : public ForwardingStream<Handed> {
 public:
  Handed(std::unique_ptr<Stream> own, std::shared_ptr<Living> living)
      : device_(own->device()), own_(own.release()), living_(std::move(living)) {
    const std::lock_guard lock(living_->mutex);
    living_->streams.insert(this);
  }
  ~Handed() override {
    if (!own_.get_deleter().is_own()) return;  // a thread of the parent may hold the mutex
    const std::lock_guard lock(living_->mutex);
    living_->streams.erase(this);
  }
  void end() { own_.reset(); }

  const Device& device() const override { return device_; }
  void write_signals(const SignalWrite& first, const SignalWrite& second) override {
    own().write_signals(first, second);
  }
  bool drained() const noexcept override { return own_ == nullptr || own_->drained(); }
  [[nodiscard]] Stream& own() const {
    if (own_ == nullptr)  // every call passes here, so the text is made for errors only
      throw Error(Status::invalid_argument, "the world of this stream has ended");
    return *own_;
  }

 private:
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
