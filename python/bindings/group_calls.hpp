// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The collectives of one of torch's process groups, without Python: `_TorchCalls` offers them to Python, and the table
/// of C functions (torch_table.cpp) offers them to torch's own C++ code.
///
///   torch's current stream   ...work | [call of a synchronous one] ----------------> later work
///                                  \                                          / Work.wait
///   the group's stream              \---> [call of an asynchronous one] --> end

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "beeline/host/collectives.hpp"
#include "beeline/torch_table.hpp"
#include "channel.hpp"
#include "tensor.hpp"
#include "timeout.hpp"

namespace beeline::python {

/// The end of an asynchronous call on its stream.
class CallEnd {
 public:
  CallEnd(std::shared_ptr<JoinedWorld> world, std::shared_ptr<Event> event)
      : world_(std::move(world)), event_(std::move(event)) {}
  /// Called without Python's lock. Makes torch's current stream wait for the end; on a host rank the caller waits.
  /// Returns at once if the world was left, because its work is over.
  ///   timeout  for host ranks; when it has passed, an error that becomes a TimeoutError is thrown, and the call goes
  ///            on
  void wait(Seconds timeout, void* current_stream) const;
  [[nodiscard]] bool query() const { return event_->done(); }

 private:
  std::shared_ptr<JoinedWorld> world_;
  std::shared_ptr<Event> event_;
};

using Ended = std::optional<CallEnd>;

/// The collectives of a group. Any thread calls the functions, without Python's lock.
class GroupCalls : public ChannelObject<Collectives> {
 public:
  using Owner = torch_table::Operand;  ///< keeps alive a tensor of an asynchronous call of a host rank
  using Manner = torch_table::Manner;

  /// A tensor of a call.
  struct Operand {
    Elements elements;
    Owner owner;
  };

  /// Collective, under Python's lock.
  ///   stream     a CUDA stream for asynchronous calls; nothing on a host rank, where all calls of the group share one
  ///              stream
  ///   make_room  called if the GPU has no space for a call beside earlier calls: it waits for those. Ranks that wait
  ///              here do not deadlock: calls with common members have the same order on all ranks, and the earlier
  ///              ones end by themselves
  GroupCalls(const Members& members, std::optional<std::uintptr_t> stream, std::function<void()> make_room);
  GroupCalls(const GroupCalls&) = delete;
  GroupCalls& operator=(const GroupCalls&) = delete;
  ~GroupCalls();

  [[nodiscard]] const std::shared_ptr<JoinedWorld>& joined() const { return ChannelObject::joined(); }
  /// The number of parts of this rank's vectors; 0 if the rank has no such vector.
  struct Parts {
    std::size_t output, source;
  };
  [[nodiscard]] Parts parts(const CollectiveShape& shape, int root) const;

  /// Makes a call whose vectors have parts of equal length, as its shape says.
  ///   output, source  equal for a call in place; empty on ranks without the vector
  [[nodiscard]] Ended call(const CollectiveShape& shape, const Operand& output, const Operand& source,
                           Reduction reduction, int root, const Manner& manner);
  /// Pieces are consecutive; their lengths are in bytes, and multiples of an element.
  [[nodiscard]] Ended alltoallv(const Operand& output, const Operand& source, const Counts& send, const Counts& receive,
                                const Manner& manner);
  [[nodiscard]] Ended barrier(const Manner& manner);

  /// Collective.
  void free();

  /// Whether the program asserts that tensors of the heap are symmetric: `CollectiveCall::symmetric`.
  std::atomic<bool> symmetric = false;

  /// Waits for all earlier calls, except those captured in graphs.
  void synchronize();
  /// Waits for all earlier work of torch's current stream.
  void synchronize_current(void* current_stream);
  /// The end of all earlier work of torch's current stream.
  [[nodiscard]] CallEnd record(void* current_stream) const;

  /// How the tensors of the last call reached the other ranks; if staged for a permanent reason, with that reason.
  [[nodiscard]] std::optional<std::string> last_transfer();
  [[nodiscard]] std::size_t ranks() const { return ranks_; }

 private:
  /// The latest call: a call on another stream is ordered after it.
  struct Latest {
    Stream* stream = nullptr;
    std::shared_ptr<Event> end;
    std::uint64_t capture = 0;  ///< the capture that contains the call
    bool is_recorded = true;    ///< whether `end` is recorded; otherwise it is recorded on first use
  };
  /// The tensors of an asynchronous call of a host rank.
  struct Use {
    std::shared_ptr<Event> end;
    std::array<Owner, 2> owners;
    void let_go() const;
  };
  /// One side of an all-to-all-v, in elements that collectives know.
  struct Row {
    Counts counts, offsets;
  };

  void make_mappings(bool of_all);
  [[nodiscard]] std::string reason_of_staging() const;
  [[nodiscard]] Stream& stream_of(void* native) const { return joined()->foreign_stream(native); }
  [[nodiscard]] Stream& current_stream(void* native);
  [[nodiscard]] bool is_in_heap(const Elements& elements) const;
  [[nodiscard]] Row row_of(const Counts& lengths, const Elements& elements, ElementType type) const;
  template <class Call>
  [[nodiscard]] Ended start(const Manner& manner, const std::array<Owner, 2>& owners, const Call& call);
  template <class Call>
  [[nodiscard]] Ended start_on_host(bool is_async, const std::array<Owner, 2>& owners, const Call& call);
  template <class Call>
  void with_room(const Call& call) const;
  Latest& come_after_latest(Stream& on, std::uint64_t capture);
  [[nodiscard]] std::shared_ptr<Event> unused_event(Stream& of);
  void let_go_of_ended();

  std::size_t rank_, ranks_;
  Stream* own_;
  bool is_host_;
  std::function<void()> make_room_;
  std::mutex mutex_;  ///< of the members below; released while a call is made or an owner is released
  std::deque<Use> uses_;
  std::unique_ptr<Event> begun_;
  Latest eager_, captured_;
  std::deque<std::shared_ptr<Event>> ends_;  ///< of earlier calls; works may hold them
  /// torch's current stream in the latest call.
  struct Current {
    void* native = nullptr;
    Stream* stream = nullptr;
  } current_;
};

}  // namespace beeline::python
