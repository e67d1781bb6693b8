// SPDX-License-Identifier: Apache-2.0
// Weak synchronization: setting, awaiting and resetting notifications (8.3).
#include <atomic>

#include "gaspi/moves.hpp"
#include "gaspi/statistics.hpp"

namespace beeline::gaspi {

namespace {

/// The flags of this rank's part, which CPU threads read.
std::uint64_t* require_own_flags(const Process& process, gaspi_segment_id_t segment, gaspi_notification_id_t first) {
  const Part part = require_own_part(process, segment);
  if (part.has_flags_on_device) [[unlikely]]
    refuse(GASPI_ERR_DEVICE,
           fmt::format("the notifications of segment {} lie in GPU memory, where kernels wait for them", segment));
  return part.flags + first;
}

/// Waits for one of `count` notifications; returns its index. The segment, or another rank's segment of the same id,
/// may be deleted while this thread waits: it holds the segment for one slice at a time, and lets a deletion pass.
Result wait_some(const Process& process, gaspi_segment_id_t segment, gaspi_notification_id_t first, std::uint32_t count,
                 std::uint64_t timeout_ms, std::uint32_t& index) {
  const Awaited awaited{.what = "a notification of segment", .number = segment, .needs_a_peer = true};
  return wait_for(process, awaited, timeout_ms, [&](std::uint64_t slice_ns) -> beeline_status {
    if (slice_ns != 0 && !process.segments().await_removal(segment, slice_ns)) return BEELINE_TIMEOUT;
    const SegmentTable::Use use(segment);
    const std::uint64_t* const flags = require_own_flags(process, segment, first);
    if (count == 1) return beeline_wait(process.world_team(), flags, BEELINE_NOT_EQUAL, 0, BEELINE_ANY_RANK, slice_ns);
    return beeline_wait_any(process.world_team(), flags, count, slice_ns, &index);
  });
}

}  // namespace

}  // namespace beeline::gaspi

using namespace beeline::gaspi;

gaspi_return_t pgaspi_notify(gaspi_segment_id_t segment_id_remote, gaspi_rank_t rank,
                             gaspi_notification_id_t notification_id, gaspi_notification_t notification_value,
                             gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms) {
  return call("gaspi_notify", [&](Process& process) {
    require_peer(process, rank);
    Queue& of = queues().get(queue);
    const SegmentTable::Use use(segment_id_remote);
    const Flag flag = require_flag(require_part(process, segment_id_remote, rank), notification_id, notification_value);
    if (!of.has_room(1)) [[unlikely]]
      return GASPI_QUEUE_FULL;
    count(Counter::notifications);
    Post post(process, of, rank, 1, timeout_ms);
    return post.notify(flag, notification_value) ? GASPI_SUCCESS : GASPI_TIMEOUT;
  });
}
GASPI_EXPORT(notify);

gaspi_return_t pgaspi_notify_waitsome(gaspi_segment_id_t segment_id_local, gaspi_notification_id_t notification_begin,
                                      gaspi_number_t num, gaspi_notification_id_t* first_id,
                                      gaspi_timeout_t timeout_ms) {
  return call("gaspi_notify_waitsome", [&](Process& process) {
    require_pointer(first_id, "first_id");
    require_notifications(notification_begin, num);
    if (num == 0) return Result::success;
    const CountedWait counted(Counter::notification_waits, Counter::notification_wait_us);
    std::uint32_t index = 0;
    const Result result = wait_some(process, segment_id_local, notification_begin, num, timeout_ms, index);
    if (result == Result::success) *first_id = static_cast<gaspi_notification_id_t>(notification_begin + index);
    return result;
  });
}
GASPI_EXPORT(notify_waitsome);

gaspi_return_t pgaspi_notify_reset(gaspi_segment_id_t segment_id_local, gaspi_notification_id_t notification_id,
                                   gaspi_notification_t* old_notification_value) {
  return call("gaspi_notify_reset", [&](Process& process) {
    require_pointer(old_notification_value, "old_notification_value");
    require_notifications(notification_id, 1);
    const SegmentTable::Use use(segment_id_local);
    std::uint64_t* const flag = require_own_flags(process, segment_id_local, notification_id);
    const std::uint64_t before = std::atomic_ref<std::uint64_t>(*flag).exchange(0, std::memory_order_acq_rel);
    *old_notification_value = static_cast<gaspi_notification_t>(before);
  });
}
GASPI_EXPORT(notify_reset);
