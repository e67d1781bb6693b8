// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Verbs-style queue pairs for kernels and CPU threads: the caller writes a work request of 64 bytes into a ring, rings
/// a doorbell, and polls a completion queue. `VerbsQueues` makes the queues (host/verbs_queues.hpp); docs/adapters.md
/// has the layout of the bytes, and says which thread serves the rings.
///
/// A queue pair is a reliable connection: its requests take effect at the peer in their order. A send or a write with
/// an immediate value consumes a receive, which the peer must have posted before; otherwise the request fails. After a
/// request has failed, later ones of the queue pair are flushed: each has a completion with an error, until
/// `VerbsQueues::reset`. One group at a time posts to a queue pair, and one polls a completion queue.
///
/// Every function is called by all threads of `group`, with the same arguments, and returns the same on all.
///
/// Source: seed 000, 2.4.6 and 5.5 (ibv_post_send, ibv_post_recv, ibv_poll_cq).

#include <cstdint>

#include "beeline/control/impl/verbs_post.hpp"
#include "beeline/control/verbs_request.hpp"

namespace beeline {

/// Posts a request to the send ring of a queue pair.
///   rings  whether to ring the doorbell, after which the engine takes the request; `ring_doorbell` rings it for all
///          requests posted before
/// Earlier writes of the group are visible to the engine. Local memory may be reused after the request's completion.
/// Returns ok; invalid_argument for a bad request, or for a pair that does not exist; no_resource if the ring has no
/// free entry: poll completions first. Without `checks` it always returns ok: bad requests then have error completions,
/// the caller passes only pairs that exist, and posts at most depth - 1 requests that are not known to be complete.
/// Entries of unsignaled requests are free once a later request completes.
template <VerbsSteps steps = VerbsSteps{}, class Access = detail::DirectAccess, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status post_send(const Group& group, const VerbsQueuesView& queues,
                                                   std::uint32_t pair, const VerbsRequest& request, bool rings = true) {
  return detail::VerbsPoster<steps, Access>(queues, pair, false).post(group, request, rings);
}

/// Posts a request to the receive ring of a queue pair: with memory for a send; without memory for a write with an
/// immediate value. Returns as `post_send`.
template <VerbsSteps steps = VerbsSteps{}, class Access = detail::DirectAccess, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status post_receive(const Group& group, const VerbsQueuesView& queues,
                                                      std::uint32_t pair, const VerbsRequest& request,
                                                      bool rings = true) {
  return detail::VerbsPoster<steps, Access>(queues, pair, true).post(group, request, rings);
}

/// Rings the doorbell of the send ring, for all requests posted before. Returns ok; invalid_argument for a pair that
/// does not exist.
template <class Access = detail::DirectAccess, class Group>
BEELINE_HOST_DEVICE Status ring_doorbell(const Group& group, const VerbsQueuesView& queues, std::uint32_t pair) {
  return detail::VerbsPoster<VerbsSteps{}, Access>(queues, pair, false).ring(group);
}

/// Takes the next completion, if there is one. Completions of one queue pair's requests come in their order. Returns
/// ok; in_progress if there is none; with `checks` invalid_argument for a queue that does not exist. A request's error
/// is in `completion.status`.
template <VerbsSteps steps = VerbsSteps{}, class Access = detail::DirectAccess, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status poll_completion(const Group& group, const VerbsQueuesView& queues,
                                                         std::uint32_t completion_queue, VerbsCompletion& completion) {
  return detail::VerbsPoller<steps, Access>(queues, completion_queue).poll(group, completion);
}

/// As `poll_completion`, but waits for the completion. Returns ok; invalid_argument; timeout; deadline; aborted.
template <VerbsSteps steps = VerbsSteps{}, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status wait_completion(const Group& group, const Context& ctx,
                                                         const VerbsQueuesView& queues, std::uint32_t completion_queue,
                                                         VerbsCompletion& completion,
                                                         Timeout timeout = Timeout::none()) {
  const detail::VerbsPoller<steps, detail::DirectAccess> poller(queues, completion_queue);
  return poller.wait(group, ctx, timeout, completion);
}

}  // namespace beeline
