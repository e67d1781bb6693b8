// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The collectives of a process group of torch's, without Python: `_TorchCalls` makes them for Python, and the table of
/// C functions (torch_table.cpp) for torch's own C++ code.
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
  /// Without Python's lock. Holds torch's current stream until then; on a host rank the caller. What a world that was
  /// left has done is over.
  ///   timeout  of a host rank; after it the call goes on, and what becomes a TimeoutError is thrown
  void wait(Seconds timeout, void* current_stream) const;
  [[nodiscard]] bool query() const { return event_->done(); }

 private:
  std::shared_ptr<JoinedWorld> world_;
  std::shared_ptr<Event> event_;
};

using Ended = std::optional<CallEnd>;

/// Its functions are called without Python's lock, by any thread.
class GroupCalls : public ChannelObject<Collectives> {
 public:
  using Owner = torch_table::Operand;  ///< keeps a tensor of an asynchronous call of a host rank
  using Manner = torch_table::Manner;

  /// A tensor of a call.
  struct Operand {
    Elements elements;
    Owner owner;
  };

  /// Collective, under Python's lock.
  ///   stream     of CUDA, for asynchronous calls; nothing on a host rank, where all calls of the group have one
  ///   make_room  called where a call finds no room on the GPU beside others: it comes after them. Ranks that wait so
  ///              for each other do not wait forever: calls that have members in common come in the same order
  ///              everywhere, and those before them end by themselves
  GroupCalls(const Members& members, std::optional<std::uintptr_t> stream, std::function<void()> make_room);
  GroupCalls(const GroupCalls&) = delete;
  GroupCalls& operator=(const GroupCalls&) = delete;
  ~GroupCalls();

  [[nodiscard]] const std::shared_ptr<JoinedWorld>& joined() const { return ChannelObject::joined(); }
  /// How many parts this rank's vectors have; 0: it has none.
  struct Parts {
    std::size_t output, source;
  };
  [[nodiscard]] Parts parts(const CollectiveShape& shape, int root) const;

  /// A call whose vectors have parts of one length, as its shape says.
  ///   output, source  the same in place; nothing on ranks that have none
  [[nodiscard]] Ended call(const CollectiveShape& shape, const Operand& output, const Operand& source,
                           Reduction reduction, int root, const Manner& manner);
  /// Pieces follow each other; their lengths are in bytes, of whole elements.
  [[nodiscard]] Ended alltoallv(const Operand& output, const Operand& source, const Counts& send, const Counts& receive,
                                const Manner& manner);
  [[nodiscard]] Ended barrier(const Manner& manner);

  /// Collective.
  void free();

  /// Whether the program asserts that tensors of the heap are symmetric: `CollectiveCall::symmetric`.
  std::atomic<bool> symmetric = false;

  /// Waits for the calls so far, not for what captures have of them.
  void synchronize();
  /// Waits for what torch's current stream has been given so far.
  void synchronize_current(void* current_stream);
  /// The end of what torch's current stream has been given so far.
  [[nodiscard]] CallEnd record(void* current_stream) const;

  /// How the tensors of the last call got to the other ranks; staged ones with the reason where that will not change.
  [[nodiscard]] std::optional<std::string> last_transfer();
  [[nodiscard]] std::size_t ranks() const { return channel().team().context().size; }

 private:
  /// The latest call: the next one on another stream comes after it.
  struct Latest {
    Stream* stream = nullptr;
    std::shared_ptr<Event> end;
    std::uint64_t capture = 0;  ///< of which it is part
    bool is_recorded = true;    ///< `end`; otherwise it is recorded when it is first asked for
  };
  /// The tensors of an asynchronous call of a host rank.
  struct Use {
    std::shared_ptr<Event> end;
    std::array<Owner, 2> owners;
    void let_go() const;
  };
  /// One side of an all-to-all-v, in words.
  struct Row {
    Counts counts, offsets;
  };

  void make_mappings(bool of_all);
  [[nodiscard]] std::string reason_of_staging() const;
  [[nodiscard]] Stream& stream_of(void* native) const { return joined()->foreign_stream(native); }
  [[nodiscard]] bool is_in_heap(const Elements& elements) const;
  [[nodiscard]] Row row_of(const Counts& lengths, const Elements& elements, ElementType type) const;
  template <class Call>
  [[nodiscard]] Ended start(const Manner& manner, const std::array<Owner, 2>& owners, const Call& call);
  template <class Call>
  [[nodiscard]] Ended start_on_host(bool is_async, const std::array<Owner, 2>& owners, const Call& call);
  template <class Call>
  void with_room(const Call& call) const;
  Latest& come_after_latest(Stream& on);
  void let_go_of_ended();

  Stream* own_;
  bool is_host_;
  std::function<void()> make_room_;
  std::mutex mutex_;  ///< of what follows; held neither while a call is made nor while an owner is let go
  std::deque<Use> uses_;
  std::unique_ptr<Event> begun_;
  Latest eager_, captured_;
};

}  // namespace beeline::python
