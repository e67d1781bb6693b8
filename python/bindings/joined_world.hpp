// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A world that Python objects share.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/host/impl/blocking_stream.hpp"
#include "beeline/host/segment_mappings.hpp"
#include "beeline/host/world.hpp"
#include "beeline/runtime/bootstrap.hpp"

namespace beeline::python {

/// The deadline in nanoseconds; throws invalid_argument if `seconds` is no valid deadline.
[[nodiscard]] std::int64_t deadline_ns_of(double seconds);

/// Settings that a program may pass in addition to the environment.
struct Settings {
  std::optional<std::string> device;
  std::optional<double> deadline_s;
  std::optional<std::size_t> heap_bytes;

  [[nodiscard]] Config config() const;
};

/// The parameters of `join_world`, for ranks that Beeline's launcher did not start.
struct Meeting {
  int rank, size;
  std::string host;
  ShareText share;
};

/// One rank's world. It lives until the last object that refers to it is gone, including views of its memory, even
/// after the rank has left it. Destroying it may block, and is done without Python's lock.
class JoinedWorld : public std::enable_shared_from_this<JoinedWorld> {
 public:
  /// Collective. Joins the world that the environment describes, or the world of `bootstrap` or `meeting`.
  [[nodiscard]] static std::shared_ptr<JoinedWorld> create(const Settings& settings);
  [[nodiscard]] static std::shared_ptr<JoinedWorld> create(const Settings& settings,
                                                           std::unique_ptr<Bootstrap> bootstrap);
  [[nodiscard]] static std::shared_ptr<JoinedWorld> create(const Settings& settings, const Meeting& meeting);
  explicit JoinedWorld(std::unique_ptr<World> world) : world_(std::move(world)) {}
  JoinedWorld(const JoinedWorld&) = delete;
  JoinedWorld& operator=(const JoinedWorld&) = delete;
  ~JoinedWorld();

  /// The world; throws invalid_argument when this rank has left it.
  [[nodiscard]] World& world() const;
  /// The world even if this rank has left it, for properties that stay known.
  [[nodiscard]] const World& known() const { return *world_; }
  /// Collective. Does nothing if the world was left, has failed, or belongs to the process that forked this process.
  void leave();
  /// Aborts the world on behalf of this rank. Does nothing if the world was left, has failed, or belongs to the process
  /// that forked this process.
  void abort(const std::string& reason);
  [[nodiscard]] bool has_left() const { return left_; }
  [[nodiscard]] bool has_gpus() const;
  /// Keeps an object that all ranks have made together and whose destructor is collective, until this rank leaves. Then
  /// the ranks destroy all such objects in the same order, the last first. (Python's objects end at different times on
  /// each rank.)
  template <class T>
  [[nodiscard]] T& adopt(std::unique_ptr<T> shared) {
    T& adopted = *shared;
    adopted_.push_back(std::move(shared));
    return adopted;
  }

  /// A CUDA stream that a framework made, given by its handle; valid as long as this object lives. Any thread calls it.
  [[nodiscard]] Stream& foreign_stream(void* native);

  /// A heap allocation or adopted object that Python has dropped without freeing it, because freeing is collective.
  struct Dropped {
    enum class Kind : std::uint64_t { symmetric, pinned, adopted, of_team };
    Kind kind;
    std::uint64_t number;  ///< the same on every rank: the offset in the slot, or a result of `number_shared`
    const void* object;
    const void* channel = nullptr;  ///< of an adopted object: see `destroy`
  };
  /// Marks `object` as dropped. Any thread calls it.
  void drop(const Dropped& object);
  /// The number of an adopted object that all ranks make, in the same order.
  [[nodiscard]] std::uint64_t number_shared() { return ++shared_; }
  /// Collective. Returns `make()`, which allocates in the heaps. If they are full and all ranks make the call, first
  /// frees the objects that all ranks have dropped, and calls `make` again. Called without Python's lock.
  template <class Make>
  [[nodiscard]] auto make_room_for(const Make& make, bool is_made_by_all = true) {
    try {
      return make();
    } catch (const Error& error) {  // raised on every rank that makes the object
      if (error.code() != Status::no_resource) throw;
      if (is_made_by_all) collect_garbage();
      if (!is_made_by_all || !free_dropped()) explain_full_heap(error);
    }
    try {
      return make();
    } catch (const Error& error) {
      if (error.code() != Status::no_resource) throw;
      explain_full_heap(error);
    }
  }

  /// Mappings that torch's groups of this world share, made with the first group; nullptr: host ranks, or too many
  /// ranks.
  SegmentMappings* mappings = nullptr;

  /// Destroys an adopted object now, and forgets the open call of `channel`, which belongs to it. Collective over the
  /// ranks that have made it; throws, and destroys nothing, if collective functions are refused. Without Python's lock.
  void destroy(const void* adopted, const void* channel);

  /// A tensor of a blocking call that has timed out and still runs.
  struct OpenTensor {
    const void* data;
    std::size_t bytes;
    nanobind::dlpack::dtype type;
    nanobind::object owner;
  };
  struct OpenCall {
    const char* call;
    std::string arguments;  ///< all arguments but the tensors, as text
    std::vector<OpenTensor> tensors;
    std::shared_ptr<detail::BlockingStream> stream;
  };
  std::map<const void*, OpenCall> open_calls;  ///< by channel; used under Python's lock
  /// Makes the default stream wait for the open calls. Called under Python's lock.
  void hold_default_stream();

  /// Ends all worlds of this process that were not left, when the program ends: leaves them, or, if the program ends by
  /// an exception, aborts them with `reason`, so that other ranks do not wait.
  static void end_all(const std::string& reason);

 private:
  static void collect_garbage();
  /// Collective. Frees the objects that every rank has dropped. Returns whether there were any.
  [[nodiscard]] bool free_dropped();
  void free(const Dropped& object);
  /// Throws `full` again, extended by the space that dropped objects of teams hold.
  [[noreturn]] void explain_full_heap(const Error& full);
  void destroy_adopted();

  std::unique_ptr<World> world_;
  std::vector<std::shared_ptr<void>> adopted_;
  std::mutex foreign_mutex_;
  std::map<void*, std::unique_ptr<Stream>> foreign_streams_;
  std::atomic<bool> left_ = false;
  std::mutex dropped_mutex_;
  std::vector<Dropped> dropped_;
  std::atomic<std::uint64_t> shared_ = 0;
};

}  // namespace beeline::python
