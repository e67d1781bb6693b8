// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Host-assisted posts to verbs-style queue pairs: a kernel writes its request into a mailbox in host memory and sets a
/// flag, a CPU thread of the rank posts the request, polls its completion, and writes that into the mailbox.
/// `VerbsOptions::assisted` starts the thread, which serves all pairs; `VerbsQueues::assisted` has the mailboxes.
///
/// Every function is called by all threads of `group`, with the same arguments, and returns the same on all. One group
/// at a time uses a pair.
///
/// Source: seed 000, 5.5.4 (GPU-host-assisted, queues on host).

#include "beeline/control/verbs.hpp"

namespace beeline {

/// A request and its completion.
struct VerbsMailbox {
  alignas(128) VerbsRequest request;
  std::uint64_t asked;  ///< ticket + 1; stored last, by the kernel
  alignas(128) VerbsCompletion completion;
  std::uint64_t answered;  ///< ticket + 1; stored last, by the CPU thread
};

/// Counts of a pair's kernels, in memory of their device: requests, and completions that were polled.
struct alignas(64) VerbsAsked {
  std::uint64_t asked, answered;
};

/// The mailboxes of a `VerbsQueues` object, which kernels take by value. Line 2 * pair has requests of the send ring,
/// the next line those of the receive ring; each has `depth` mailboxes, and one stays free.
struct VerbsAssistedView {
  VerbsMailbox* mailboxes;  ///< [2 * pairs][depth]
  VerbsAsked* asked;        ///< [2 * pairs]
  std::uint64_t* asleep;    ///< 0, or how CPU threads wake the thread that posts
  std::uint32_t pairs, depth;
};

/// Asks for a post to the send ring of a pair, or to its receive ring if `request` is a receive. Each request has a
/// completion, which `wait_assisted` takes. Returns ok; invalid_argument for a bad request, for a request with a
/// payload, which the CPU may not reach, or for a pair that does not exist; no_resource if no mailbox of the ring is
/// free.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status post_assisted(const Group& group, const VerbsAssistedView& queues,
                                                       std::uint32_t pair, const VerbsRequest& request) {
  const bool receives = request.opcode == VerbsOpcode::receive;
  if (pair >= queues.pairs || request.payload != nullptr || !detail::is_valid(request, receives))
    return Status::invalid_argument;
  group.sync();
  const std::uint32_t line = 2 * pair + (receives ? 1 : 0);
  VerbsAsked& asked = queues.asked[line];
  const std::uint64_t ticket = asked.asked;
  if (ticket - asked.answered >= queues.depth - 1) return Status::no_resource;
  group.sync();
  if (group.thread_rank() != 0) return Status::ok;
  VerbsMailbox& mailbox = queues.mailboxes[std::size_t{line} * queues.depth + (ticket & (queues.depth - 1))];
  mailbox.request = request;
  asked.asked = ticket + 1;
  detail::SystemAtomic<std::uint64_t>(mailbox.asked).store(ticket + 1, std::memory_order_release);
  if constexpr (detail::executor == DeviceKind::host)
    if (const std::uint64_t asleep = detail::load_acquired(*queues.asleep); asleep != 0) detail::wake_engine(asleep);
  return Status::ok;
}

/// Takes the completion of the next request of a pair's send ring, or receive ring, in the order of the posts. Waits
/// for it up to `timeout`. Returns ok; invalid_argument for a pair that does not exist; timeout; deadline; aborted.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status wait_assisted(const Group& group, const Context& ctx,
                                                       const VerbsAssistedView& queues, std::uint32_t pair,
                                                       bool receives, VerbsCompletion& completion,
                                                       Timeout timeout = Timeout::none()) {
  if (pair >= queues.pairs) return Status::invalid_argument;
  group.sync();
  const std::uint32_t line = 2 * pair + (receives ? 1 : 0);
  VerbsAsked& asked = queues.asked[line];
  const std::uint64_t ticket = asked.answered;
  const VerbsMailbox& mailbox = queues.mailboxes[std::size_t{line} * queues.depth + (ticket & (queues.depth - 1))];
  Status status = Status::ok;
  if (group.thread_rank() == 0) {
    status = detail::await_engine(ctx, {true, timeout},
                                  [&] { return detail::load_acquired(mailbox.answered) == ticket + 1; });
    if (status != Status::ok && status != Status::timeout)
      status =
          detail::give_up_on_engine(ctx, {Operation::flush, Verb::put, 0, 0, 0, no_peer}, ticket + 1, ticket, status);
  }
  status = agree(group, status);
  if (status != Status::ok) return status;
  completion = mailbox.completion;
  group.sync();
  if (group.thread_rank() == 0) asked.answered = ticket + 1;
  return Status::ok;
}

}  // namespace beeline
