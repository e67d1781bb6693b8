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

/// All worlds of the process, so that its end can leave them.
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

std::int64_t deadline_ns_of(double seconds) {
  constexpr double longest_s = 1e9;
  require(std::isfinite(seconds) && seconds > 0 && seconds <= longest_s, Status::invalid_argument,
          fmt::format("deadline_s: a number of seconds above 0 and up to 1e9, not {}", seconds));
  return static_cast<std::int64_t>(seconds * 1e9);
}

Config Settings::config() const {
  Config config = Config::from_environment();
  if (device) config.device = *device;
  if (deadline_s) {
    config.deadline_ns = deadline_ns_of(*deadline_s);
    // The host waits for streams as long as their work may wait for other ranks.
    config.stream_deadline_ns = std::max(config.stream_deadline_ns, config.deadline_ns);
  }
  if (heap_bytes) config.heap_bytes = *heap_bytes;
  return config;
}

std::shared_ptr<JoinedWorld> JoinedWorld::create(const Settings& settings) {
  return registered(World::create(settings.config()));
}

std::shared_ptr<JoinedWorld> JoinedWorld::create(const Settings& settings, const Meeting& meeting) {
  Config config = settings.config();
  config.rank = meeting.rank;
  config.size = meeting.size;
  return registered(World::create(config, join_world(config, meeting.host, meeting.share)));
}

std::shared_ptr<JoinedWorld> JoinedWorld::create(const Settings& settings, std::unique_ptr<Bootstrap> bootstrap) {
  Config config = settings.config();
  config.rank = bootstrap->rank();
  config.size = bootstrap->size();
  return registered(World::create(config, std::move(bootstrap)));
}

JoinedWorld::~JoinedWorld() {
  if (world_->life()->is_forked()) {  // CUDA's streams belong to the parent process
    static_cast<void>(new auto(std::move(foreign_streams_)));
  }
  // DLPack's consumers may release memory with or without Python's lock.
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
    open_calls.erase(channel);  // the channel's end waits for the default stream, and that waits for the call's work
  }
  std::shared_ptr<void> last = std::move(*place);
  adopted_.erase(place);
  last.reset();
}

void JoinedWorld::hold_default_stream() {
  for (const auto& [channel, call] : open_calls) call.stream->hold_default();
}

Stream& JoinedWorld::foreign_stream(void* native) {
  const std::lock_guard lock(foreign_mutex_);
  std::unique_ptr<Stream>& stream = foreign_streams_[native];
  if (stream == nullptr) stream = world().adopt_stream(native);
  return *stream;
}

void JoinedWorld::drop(const Dropped& object) {
  const std::lock_guard lock(dropped_mutex_);
  dropped_.push_back(object);
}

void JoinedWorld::collect_garbage() {
  const nb::gil_scoped_acquire locked;
  nb::module_::import_("gc").attr("collect")();
}

bool JoinedWorld::free_dropped() {
  struct Name {
    Dropped::Kind kind;
    std::uint64_t number;
    auto operator<=>(const Name&) const = default;
  };
  std::map<Name, Dropped> mine;
  std::vector<Name> names;
  {
    const std::lock_guard lock(dropped_mutex_);
    for (const Dropped& each : dropped_)
      if (each.kind != Dropped::Kind::of_team && mine.emplace(Name{each.kind, each.number}, each).second)
        names.push_back({each.kind, each.number});
  }
  std::map<Name, int> counts;
  int ranks = 0;
  for (const auto& bytes : world_->allgather(std::as_bytes(std::span(names)))) {
    std::vector<Name> theirs(bytes.size() / sizeof(Name));
    if (!theirs.empty()) std::memcpy(theirs.data(), bytes.data(), theirs.size() * sizeof(Name));
    for (const Name& name : theirs) ++counts[name];
    ++ranks;
  }
  bool any = false;
  for (const auto& [name, count] : counts) {
    if (count != ranks) continue;
    free(mine.at(name));
    any = true;
  }
  return any;
}

void JoinedWorld::free(const Dropped& object) {
  if (object.kind == Dropped::Kind::adopted)
    destroy(object.object, object.channel);
  else
    world_->free(const_cast<void*>(object.object));
  const std::lock_guard lock(dropped_mutex_);
  std::erase_if(dropped_, [&object](const Dropped& each) { return each.object == object.object; });
}

void JoinedWorld::explain_full_heap(const Error& full) {
  const std::lock_guard lock(dropped_mutex_);
  const auto count = std::ranges::count(dropped_, Dropped::Kind::of_team, &Dropped::kind);
  if (count == 0) throw full;
  std::string text = full.what();
  if (const std::string code = fmt::format("{}: ", name(full.code())); text.starts_with(code))
    text.erase(0, code.size());
  throw Error(full.code(), fmt::format("{}; {} Collectives or Messages of teams were dropped without .free(), and keep "
                                       "their memory until the world ends",
                                       text, count));
}

void JoinedWorld::destroy_adopted() {
  while (!adopted_.empty()) adopted_.pop_back();
}

World& JoinedWorld::world() const {
  if (world_->life()->is_forked()) world_->check();  // throws an error that says so
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
