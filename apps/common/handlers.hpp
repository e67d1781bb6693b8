// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Message handlers with the semantics of the seven functions of the Graph500 reference code's `aml.h`, built on tasks:
///
/// | aml.h                              | here                                                  |
/// |------------------------------------|-------------------------------------------------------|
/// | aml_init, aml_finalize             | constructor and destructor of `Handlers`              |
/// | aml_register_handler(handler, n)   | `Handlers<.., Handler, ..>::register_handler<Handler>`  |
/// | aml_send(data, n, bytes, rank)     | `Sender::send<Handler>(group, ctx, data, bytes, rank)` |
/// | aml_barrier                        | `Handlers::barrier`                                   |
/// | aml_my_pe, aml_n_pes               | `rank`, `size` of the context                         |
///
/// Handlers run at the destination rank, those of a queue's messages one after another, and may send. A rank's messages
/// in one queue are handled in the order in which it has sent them. Messages to one rank are not aggregated.

#include <cstddef>
#include <cstdint>

#include "beeline/host/tasks.hpp"

namespace apps {

/// A handler as a function of tasks. `Handler` has a `name`, and
///   operator()(group, ctx, sender, from, data, bytes, object)   `sender`, a `Sender`, is for the handler's own
///   messages
template <class Handler, class All>
struct HandlerTask {
  static constexpr const char* name = Handler::name;
  struct Arguments {
    std::uint64_t bytes;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const beeline::Context& ctx, const beeline::Task& task) const;
};

/// The list of handlers, the same on all ranks.
template <class... Each>
struct HandlerList {
  using Functions = beeline::TaskList<HandlerTask<Each, HandlerList>...>;
};

/// Sends messages from kernels, from handlers, and on host ranks from CPU threads.
template <class List>
class Sender {
 public:
  BEELINE_HOST_DEVICE explicit Sender(const beeline::TaskChannel& tasks) : tasks_(tasks) {}

  /// Every thread of `group` calls it. `data` [bytes] may be reused on return. A handler's message for which no cell is
  /// free is refused at once with `timeout`, so that handlers never wait for each other.
  ///   queue  one of `queues()`
  template <class Handler, class Group>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Group& group, const beeline::Context& ctx,
                                                         const void* data, std::size_t bytes, std::uint32_t rank,
                                                         std::uint32_t queue = 0) const {
    using Function = HandlerTask<Handler, List>;
    const typename Function::Arguments arguments{bytes};
    beeline::TaskPost post = beeline::task_of<typename List::Functions, Function>(arguments, rank, queue);
    post.payload = data, post.payload_bytes = bytes;
    const bool in_handler = tasks_.running != beeline::outside_tasks;
    return beeline::post_task(group, ctx, tasks_, post,
                              in_handler ? beeline::Timeout::test() : beeline::Timeout::none());
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t queues() const { return tasks_.queues; }

 private:
  beeline::TaskChannel tasks_;
};

template <class Handler, class All>
template <class Group>
BEELINE_HOST_DEVICE void HandlerTask<Handler, All>::operator()(const Group& group, const beeline::Context& ctx,
                                                               const beeline::Task& task) const {
  Handler{}(group, ctx, Sender<All>(task.channel), task.poster, static_cast<const std::byte*>(task.payload),
            task.payload_bytes, task.object);
}

/// The handlers of a team. Constructor and destructor are collective.
template <class List>
class Handlers {
 public:
  ///   most_bytes  of a message
  ///   shape       by default all handlers of a rank run one after another
  Handlers(beeline::Team& team, std::size_t most_bytes, const beeline::TaskOptions& shape = {.queues = 1, .workers = 1})
      : tasks_(team, shape), payloads_(team, tasks_.payload_buffer_bytes(most_bytes)) {}

  /// Collective. `object` is passed to the handler when it runs on this rank.
  template <class Handler>
  void register_handler(void* object) {
    tasks_.template register_function<HandlerTask<Handler, List>>(
        {.object = object, .payloads = payloads_.data(), .payload_bytes = payloads_.bytes()});
  }
  [[nodiscard]] Sender<List> sender() const { return Sender<List>(tasks_.channel()); }
  /// Collective. Returns when every message that any rank or handler has sent is handled. No kernel may send meanwhile.
  void barrier() { tasks_.quiet(); }

 private:
  beeline::Tasks<typename List::Functions> tasks_;
  beeline::SymmetricArray<std::byte> payloads_;
};

}  // namespace apps
