// SPDX-License-Identifier: Apache-2.0
#include "joined_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstring>
#include <exception>
#include <mutex>
#include <span>

namespace nb = nanobind;

namespace beeline::python {

namespace {

/// Every world of the process, for its end.
struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<JoinedWorld>> worlds;
};

Registry& registry() {
  static Registry the_only;
  return the_only;
}

std::shared_ptr<JoinedWorld> registered(std::unique_ptr<World> world) {
  auto joined = std::make_shared<JoinedWorld>(std::move(world));
  const std::lock_guard lock(registry().mutex);
  std::erase_if(registry().worlds, [](const auto& one) { return one.expired(); });
  registry().worlds.push_back(joined);
  return joined;
}

}  // namespace

Config Settings::config() const {
  Config config = Config::from_environment();
  if (device) config.device = *device;
  if (deadline_s) {
    constexpr double longest_s = 1e9;
    require(std::isfinite(*deadline_s) && *deadline_s > 0 && *deadline_s <= longest_s, Status::invalid_argument,
            fmt::format("deadline_s: a number of seconds above 0 and up to 1e9, not {}", *deadline_s));
    config.deadline_ns = static_cast<std::int64_t>(*deadline_s * 1e9);
  }
  if (heap_bytes) config.heap_bytes = *heap_bytes;
  return config;
}

std::shared_ptr<JoinedWorld> JoinedWorld::create(const Settings& settings) {
  return registered(World::create(settings.config()));
}

std::shared_ptr<JoinedWorld> JoinedWorld::create(const Settings& settings, std::unique_ptr<Bootstrap> bootstrap) {
  Config config = settings.config();
  config.rank = bootstrap->rank();
  config.size = bootstrap->size();
  return registered(World::create(config, std::move(bootstrap)));
}

JoinedWorld::~JoinedWorld() {
  if (world_->life()->is_forked()) {  // CUDA's streams are the parent's
    static_cast<void>(new auto(std::move(foreign_streams_)));
  }
  // DLPack's consumers may let go of memory with or without Python's lock.
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) {
    open_calls.clear();
    const nb::gil_scoped_release unlocked;
    destroy_adopted();
    foreign_streams_.clear();
    world_.reset();
  } else {
    if (!open_calls.empty() && Py_IsInitialized() != 0) {
      const nb::gil_scoped_acquire locked;
      open_calls.clear();
    }
    destroy_adopted();
    foreign_streams_.clear();
    world_.reset();
  }
}

void JoinedWorld::destroy(const void* adopted, const void* channel) {
  if (!world_->failed()) world_->check_collective();
  const auto place =
      std::find_if(adopted_.begin(), adopted_.end(), [&](const auto& each) { return each.get() == adopted; });
  if (place == adopted_.end()) return;
  {
    const nb::gil_scoped_acquire locked;
    open_calls.erase(channel);  // the default stream waits for its work, and the channel's end for the default stream
  }
  std::shared_ptr<void> last = std::move(*place);
  adopted_.erase(place);
  last.reset();
}

void JoinedWorld::hold_default_stream() {
  for (const auto& [channel, call] : open_calls) call.stream->hold_default();
}

Stream& JoinedWorld::foreign_stream(void* native) {
  std::unique_ptr<Stream>& stream = foreign_streams_[native];
  if (stream == nullptr) stream = world().adopt_stream(native);
  return *stream;
}

void JoinedWorld::drop(const DroppedMemory& memory) {
  const std::lock_guard lock(dropped_mutex_);
  dropped_.push_back(memory);
}

bool JoinedWorld::free_dropped() {
  struct Place {
    std::uint64_t offset, heap;
    auto operator<=>(const Place&) const = default;
  };
  const Context& context = world_->host_context();
  std::map<Place, void*> mine;
  std::vector<Place> places;
  {
    const std::lock_guard lock(dropped_mutex_);
    for (const DroppedMemory& each : dropped_) {
      const Place place{context.offset_in_slot(each.address), static_cast<std::uint64_t>(each.heap)};
      mine[place] = each.address;
      places.push_back(place);
    }
  }
  std::map<Place, int> counts;
  int ranks = 0;
  for (const auto& bytes : world_->allgather(std::as_bytes(std::span(places)))) {
    std::vector<Place> theirs(bytes.size() / sizeof(Place));
    if (!theirs.empty()) std::memcpy(theirs.data(), bytes.data(), theirs.size() * sizeof(Place));
    for (const Place& place : theirs) ++counts[place];
    ++ranks;
  }
  bool any = false;
  for (const auto& [place, count] : counts) {
    if (count != ranks) continue;
    void* const address = mine.at(place);
    world_->free(address);
    const std::lock_guard lock(dropped_mutex_);
    std::erase_if(dropped_, [address](const DroppedMemory& each) { return each.address == address; });
    any = true;
  }
  return any;
}

void JoinedWorld::destroy_adopted() {
  while (!adopted_.empty()) adopted_.pop_back();
}

World& JoinedWorld::world() const {
  if (world_->life()->is_forked()) world_->check();  // throws what says so
  if (left_)
    throw Error(Status::invalid_argument, fmt::format("rank {} has left the world", world_->rank()), world_->rank());
  return *world_;
}

void JoinedWorld::leave() {
  if (left_ || world_->life()->is_forked() || world_->failed()) return;
  world_->check_collective();  // before anything is destroyed
  if (Py_IsInitialized() != 0) {
    const nb::gil_scoped_acquire locked;
    hold_default_stream();
  }
  world_->synchronize();
  destroy_adopted();
  world_->leave();
  left_ = true;
}

void JoinedWorld::abort(const std::string& reason) {
  if (!left_ && !world_->life()->is_forked() && !world_->failed()) world_->abort(reason);
}

bool JoinedWorld::has_gpus() const { return world_->device().is_gpu() || world_->mixed(); }

void JoinedWorld::end_all(const std::string& reason) {
  std::vector<std::weak_ptr<JoinedWorld>> worlds;
  {
    const std::lock_guard lock(registry().mutex);
    worlds.swap(registry().worlds);
  }
  for (const auto& one : worlds) {
    const std::shared_ptr<JoinedWorld> joined = one.lock();
    if (!joined) continue;
    try {
      if (reason.empty())
        joined->leave();
      else
        joined->abort(reason);
    } catch (const std::exception& error) {
      log(LogLevel::error, fmt::format("leaving the world: {}", error.what()), joined->world_->rank());
    }
  }
}

}  // namespace beeline::python
