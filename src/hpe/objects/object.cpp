// SPDX-License-Identifier: Apache-2.0
#include "beeline/hpe/object.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "beeline/core/log.hpp"
#include "beeline/hpe/launch_objects.hpp"
#include "core/fork.hpp"
#include "hpe/objects/block_object.hpp"
#include "hpe/objects/fault_handler.hpp"
#include "hpe/objects/object_state.hpp"
#include "hpe/owners.hpp"
#include "hpe/reach.hpp"
#include "transport/checks.hpp"

namespace beeline::hpe {

namespace {

constexpr std::array<const char*, 4> protocol_names = {"automatic", "protection", "tracking", "managed"};
constexpr std::array<const char*, 4> hint_names = {"none", "read_mostly", "streaming", "device_only"};

/// All objects of the process.
struct Objects {
  std::mutex mutex;
  std::vector<ObjectState*> all;
  std::map<void*, ObjectMemory> allocated;  ///< by `allocate`

  void forget(ObjectState* state) {
    const std::lock_guard lock(mutex);
    std::erase(all, state);
  }

  static Objects& get() {
    static Objects& the_only = *new Objects;  // objects may be released after static objects
    return the_only;
  }
};

void log_failure(const char* call, const std::exception& error) {
  log(LogLevel::error, fmt::format("{}: {}", call, error.what()));
}

/// Each object once, in one order for all threads, so that no two wait for each other.
std::vector<ObjectState*> in_order(std::span<ObjectState* const> objects) {
  std::vector<ObjectState*> each(objects.begin(), objects.end());
  std::sort(each.begin(), each.end(), std::less<>());
  each.erase(std::unique(each.begin(), each.end()), each.end());
  return each;
}

}  // namespace

const char* name(Protocol protocol) noexcept { return protocol_names[static_cast<std::size_t>(protocol)]; }
const char* name(Hint hint) noexcept { return hint_names[static_cast<std::size_t>(hint)]; }

// --- Life ---

namespace {

void check_object(std::size_t bytes, const ObjectOptions& options, Device device) {
  if (options.deadline && options.deadline->count() <= 0)
    throw Error(Status::invalid_argument,
                fmt::format("an object's deadline of {} ns: expected more than 0", options.deadline->count()));
  if (options.device_memory == nullptr || bytes == 0) return;
  // A GPU's symmetric heap may consist of several allocations.
  const detail::OwnedRange given =
      device.is_gpu() ? detail::range_of(options.device_memory)
                      : detail::checked_range(options.device_memory, bytes, "the memory for an object");
  if (given.copying != nullptr || !detail::is_direct(device, given.owner))
    throw Error(Status::invalid_argument,
                fmt::format("the memory at {} for an object is {}", options.device_memory,
                            given.copying != nullptr ? "another object's" : "not reached by " + device.name()));
}

}  // namespace

std::unique_ptr<ObjectState> detail::make_object(std::size_t bytes, const ObjectOptions& options) {
  const Device device = options.device ? *options.device : Device::all().front();
  device.require_working();
  check_object(bytes, options, device);
  if (options.protocol == Protocol::managed) return make_managed_object(bytes, options, device);
  return std::make_unique<BlockObject>(bytes, options, device);
}

ObjectMemory::ObjectMemory(std::size_t bytes, const ObjectOptions& options)
    : state_(detail::make_object(bytes, options).release()) {
  Objects& objects = Objects::get();
  const std::lock_guard lock(objects.mutex);
  objects.all.push_back(state_.get());
}

ObjectMemory::Deleter::Deleter() : fork_depth(beeline::detail::fork_depth()) {}

void ObjectMemory::Deleter::operator()(ObjectState* state) const {
  if (fork_depth != beeline::detail::fork_depth()) return;  // a forked process leaves its copy alone
  try {
    forget(state);
    delete state;
  } catch (const std::exception& error) {
    log_failure("an object's memory is not released", error);
    Objects::get().forget(state);  // no name of it is left
  }
}

void ObjectMemory::Deleter::forget(ObjectState* state) {
  state->close();
  Objects::get().forget(state);
}

ObjectMemory::~ObjectMemory() = default;
ObjectMemory::ObjectMemory(ObjectMemory&& other) noexcept = default;
ObjectMemory& ObjectMemory::operator=(ObjectMemory&& other) noexcept = default;

void ObjectMemory::release() {
  Deleter::forget(&state());
  delete state_.release();
}

ObjectState& ObjectMemory::state() const {
  require(state_ != nullptr, Status::invalid_argument, "the object was released");
  return *state_;
}
void* ObjectMemory::data() const { return state().data(); }
std::size_t ObjectMemory::bytes() const { return state().bytes(); }
Device ObjectMemory::device() const { return state().home(); }
void* ObjectMemory::on(Device device) const { return state().address_on(device); }
ObjectStatistics ObjectMemory::statistics() const { return state().statistics(); }

void* allocate(std::size_t bytes, const ObjectOptions& options) {
  ObjectMemory object(bytes, options);
  void* const start = object.data();
  Objects& objects = Objects::get();
  const std::lock_guard lock(objects.mutex);
  objects.allocated.emplace(start, std::move(object));
  return start;
}

void deallocate(void* object) {
  Objects& objects = Objects::get();
  std::map<void*, ObjectMemory>::node_type taken;
  {
    const std::lock_guard lock(objects.mutex);
    taken = objects.allocated.extract(object);
  }
  require(!taken.empty(), Status::invalid_argument,
          fmt::format("{} is no object of hpe::allocate, or was deallocated already", object));
  try {
    taken.mapped().release();
  } catch (...) {
    const std::lock_guard lock(objects.mutex);
    objects.allocated.insert(std::move(taken));
    throw;
  }
}

ObjectState& object_at(const void* address) {
  const detail::PinnedObject object = detail::pinned_object_at(address);
  require(object != nullptr, Status::invalid_argument, fmt::format("no object contains the address {}", address));
  return *object;
}

// --- Use ---

HostAccess::HostAccess(ObjectState& object, std::size_t first, std::size_t count, std::size_t element_bytes,
                       Access access)
    : object_(object) {
  require(element_bytes > 0, Status::invalid_argument, "a HostAccess to elements of 0 bytes");
  const std::size_t elements = object.bytes() / element_bytes;
  if (first > elements || count > elements - first || count == 0)
    throw Error(Status::invalid_argument, fmt::format("an access to {} elements from {} on: {} has {}", count, first,
                                                      object.described(), elements));
  object_.begin_access({first * element_bytes, count * element_bytes}, access);
}
HostAccess::~HostAccess() { object_.end_access(); }

void detail::refuse_captured_use(StreamState& stream) {
  refuse_captured(stream.own(), "work that uses an object",
                  "its transfers depend on what the host has written since. Capture kernels with on(device), the "
                  "object's address there, and put each launch of the graph into a DeviceAccess of its stream");
}

void detail::acquire_for_kernel(std::span<ObjectState* const> objects, Stream& stream) {
  if (objects.empty()) return;
  refuse_captured_use(stream.state());
  install_fault_handler();
  std::size_t acquired = 0;
  const std::vector<ObjectState*> each = in_order(objects);
  try {
    for (; acquired < each.size(); ++acquired) each[acquired]->acquire(stream);
  } catch (...) {
    release_after_kernel(std::span(each).first(acquired), stream);
    throw;
  }
}

void detail::release_after_kernel(std::span<ObjectState* const> objects, Stream& stream) {
  for (ObjectState* const object : in_order(objects)) object->release(stream);
}

DeviceAccess::DeviceAccess(Stream& stream, std::vector<ObjectState*> objects)
    : stream_(stream), objects_(std::move(objects)) {
  require(std::find(objects_.begin(), objects_.end(), nullptr) == objects_.end(), Status::invalid_argument,
          "a DeviceAccess to nullptr");
  detail::acquire_for_kernel(objects_, stream_);
}
DeviceAccess::DeviceAccess(Stream& stream) : stream_(stream) {
  {
    Objects& all = Objects::get();
    const std::lock_guard lock(all.mutex);
    objects_ = all.all;
  }
  detail::acquire_for_kernel(objects_, stream_);
}
DeviceAccess::~DeviceAccess() {
  try {
    detail::release_after_kernel(objects_, stream_);
  } catch (const std::exception& error) {
    log_failure("the release of objects", error);
  }
}

}  // namespace beeline::hpe
