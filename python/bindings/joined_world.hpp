// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A world as Python objects share it.

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

/// A deadline as Python passes it; throws invalid_argument for what is none.
[[nodiscard]] std::int64_t deadline_ns_of(double seconds);

/// What a program may set beside the environment.
struct Settings {
  std::optional<std::string> device;
  std::optional<double> deadline_s;
  std::optional<std::size_t> heap_bytes;

  [[nodiscard]] Config config() const;
};

/// How ranks meet that no launcher of Beeline's has counted: `join_world`.
struct Meeting {
  int rank, size;
  std::string host;
  ShareText share;
};

/// One rank's world. It lives until the last object that refers to it is gone, views of its memory included, also when
/// it was left before. Destroying it may block: it is done without Python's lock.
class JoinedWorld : public std::enable_shared_from_this<JoinedWorld> {
 public:
  /// Collective. Takes part in the world that the environment describes, or that `bootstrap` belongs to.
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
  /// As above, for what stays known afterwards.
  [[nodiscard]] const World& known() const { return *world_; }
  /// Collective. Does nothing in a world that was left, has failed, or is that of the process that forked this one.
  void leave();
  /// This rank gives up. Does nothing in a world that was left, has failed, or is that of the process that forked this
  /// one.
  void abort(const std::string& reason);
  [[nodiscard]] bool has_left() const { return left_; }
  [[nodiscard]] bool has_gpus() const;
  /// Keeps what all ranks have made together, and whose destructor is collective, until this rank leaves: then the
  /// ranks destroy all of it in the same order, the last first. Python's objects end at different times on each rank.
  template <class T>
  [[nodiscard]] T& adopt(std::unique_ptr<T> shared) {
    T& adopted = *shared;
    adopted_.push_back(std::move(shared));
    return adopted;
  }

  /// A CUDA stream that a framework made, by its handle; as long as this object lives. Any thread calls it.
  [[nodiscard]] Stream& foreign_stream(void* native);

  /// Memory, or something adopted, that Python has dropped without freeing it, which is collective.
  struct Dropped {
    enum class Kind : std::uint64_t { symmetric, pinned, adopted, of_team };
    Kind kind;
    std::uint64_t number;  ///< the same on every rank: its offset in the slot, or what `number_shared` gave
    const void* object;
    const void* channel = nullptr;  ///< of something adopted: see `destroy`
  };
  /// Any thread calls it.
  void drop(const Dropped& object);
  /// For something adopted that all ranks make, in the same order.
  [[nodiscard]] std::uint64_t number_shared() { return ++shared_; }
  /// Collective. Returns `make()`, which allocates in the heaps. If they are full and all ranks call it, this first
  /// frees the objects that all ranks have dropped, and calls `make` again. Does not hold Python's lock.
  template <class Make>
  [[nodiscard]] auto make_room_for(const Make& make, bool is_made_by_all = true) {
    try {
      return make();
    } catch (const Error& error) {  // on every rank that makes it
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

  /// What torch's groups of this world share, made with the first of them; nullptr: host ranks, or too many.
  SegmentMappings* mappings = nullptr;

  /// Destroys something adopted now, and forgets the open call of `channel`, which it holds. Collective over those who
  /// have made it; throws, and destroys nothing, where collective functions are refused. Without Python's lock.
  void destroy(const void* adopted, const void* channel);

  /// A blocking call that has timed out: its work goes on.
  struct OpenTensor {
    const void* data;
    std::size_t bytes;
    nanobind::dlpack::dtype type;
    nanobind::object owner;
  };
  struct OpenCall {
    const char* call;
    std::string arguments;  ///< all but the tensors, as text
    std::vector<OpenTensor> tensors;
    std::shared_ptr<detail::BlockingStream> stream;
  };
  std::map<const void*, OpenCall> open_calls;  ///< by their channels; under Python's lock
  /// Makes the default stream wait for the open calls. Under Python's lock.
  void hold_default_stream();

  /// The worlds of this process that are not left, when the program ends: leaves them, or, if it ends by an exception,
  /// aborts them with `reason`, so that other ranks do not wait.
  static void end_all(const std::string& reason);

 private:
  static void collect_garbage();
  /// Collective. Frees what every rank has dropped. Returns whether there was any.
  [[nodiscard]] bool free_dropped();
  void free(const Dropped& object);
  /// Throws `full` again, with what teams' dropped objects hold.
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
