// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Handlers of bytes, in the meaning of the seven functions of the Graph500 reference code's `aml.h`, made of tasks:
///
/// | aml.h                              | here                                                  |
/// |------------------------------------|-------------------------------------------------------|
/// | aml_init, aml_finalize             | constructor and destructor of `Handlers`              |
/// | aml_register_handler(handler, n)   | `Handlers<.., Handler, ..>::register_handler<Handler>`  |
/// | aml_send(data, n, bytes, rank)     | `Sender::send<Handler>(group, ctx, data, bytes, rank)` |
/// | aml_barrier                        | `Handlers::barrier`                                   |
/// | aml_my_pe, aml_n_pes               | `rank`, `size` of the context                         |
///
/// A handler runs at the rank that the bytes are sent to, one after another, and may send. Messages
/// to one rank are not joined.

#include <cstddef>
#include <cstdint>

#include "beeline/host/tasks.hpp"

namespace apps {

/// A handler as a function of tasks. `Handler` has a `name`, and
///   operator()(group, ctx, sender, from, data, bytes, object)   with a `Sender` for messages of its own
template <class Handler, class All>
struct HandlerTask {
  static constexpr const char* name = Handler::name;
  struct Arguments {
    std::uint64_t bytes;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const beeline::Context& ctx, const beeline::Task& task) const;
};

/// Handlers, the same on all ranks.
template <class... Each>
struct HandlerList {
  using Functions = beeline::TaskList<HandlerTask<Each, HandlerList>...>;
};

/// Sends bytes, from kernels, handlers, and on host ranks from CPU threads.
template <class List>
class Sender {
 public:
  BEELINE_HOST_DEVICE explicit Sender(const beeline::TaskChannel& tasks) : tasks_(tasks) {}

  /// Every thread of `group` calls it. `data` [bytes] may be reused on return. From a handler: a message that finds no
  /// place at once is refused with `timeout`, so that handlers never wait for each other.
  template <class Handler, class Group>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Group& group, const beeline::Context& ctx,
                                                         const void* data, std::size_t bytes,
                                                         std::uint32_t rank) const {
    using Function = HandlerTask<Handler, List>;
    const typename Function::Arguments arguments{bytes};
    beeline::TaskPost post = beeline::task_of<typename List::Functions, Function>(arguments, rank);
    post.payload = data, post.payload_bytes = bytes;
    const bool in_handler = tasks_.running != beeline::outside_tasks;
    return beeline::post_task(group, ctx, tasks_, post,
                              in_handler ? beeline::Timeout::test() : beeline::Timeout::none());
  }

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

/// Constructor and destructor are collective.
template <class List>
class Handlers {
 public:
  /// Messages of up to `most_bytes`.
  Handlers(beeline::Team& team, std::size_t most_bytes)
      : tasks_(team, {.queues = 1, .workers = 1}), payloads_(team, tasks_.payload_buffer_bytes(most_bytes)) {}

  /// Collective. What the handler finds as `object` on this rank.
  template <class Handler>
  void register_handler(void* object) {
    tasks_.template register_function<HandlerTask<Handler, List>>(
        {.object = object, .payloads = payloads_.data(), .payload_bytes = payloads_.bytes()});
  }
  [[nodiscard]] Sender<List> sender() const { return Sender<List>(tasks_.channel()); }
  /// Collective. Returns when all that any rank has sent is handled, and what handlers have sent; no kernel may be
  /// sending.
  void barrier() { tasks_.quiet(); }

 private:
  beeline::Tasks<typename List::Functions> tasks_;
  beeline::SymmetricArray<std::byte> payloads_;
};

}  // namespace apps
