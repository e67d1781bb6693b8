// SPDX-License-Identifier: Apache-2.0
// Writes, reads, and those with a notification, one by one and in lists (8.2, 8.4).
#include <algorithm>
#include <bitset>
#include <list>
#include <memory>
#include <vector>

#include "gaspi/moves.hpp"
#include "gaspi/statistics.hpp"

namespace beeline::gaspi {

namespace {

/// Where a request goes.
struct To {
  gaspi_rank_t rank;
  gaspi_queue_id_t queue;
  gaspi_timeout_t timeout_ms;
};

gaspi_return_t result_of(bool has_begun) { return has_begun ? GASPI_SUCCESS : GASPI_TIMEOUT; }

/// A call with one transfer: `check(process, move)` refuses what is not valid, `begin(post, move)` begins the rest.
template <class Check, class Begin>
gaspi_return_t transfer(const char* function, const Named& named, const To& to, std::uint32_t entries,
                        const Check& check, const Begin& begin) noexcept {
  return call(function, [&](Process& process) {
    require_peer(process, to.rank);
    Queue& queue = queues().get(to.queue);
    const UseOfBoth use(named.segment_local, named.segment_remote);
    const Move move(process, named, to.rank);
    const auto checked = check(process, move);
    if (!queue.has_room(entries)) [[unlikely]]
      return GASPI_QUEUE_FULL;
    Post post(process, queue, to.rank, entries, to.timeout_ms);
    return result_of(begin(post, move, checked));
  });
}

/// For transfers whose arguments `Move` checks.
constexpr auto no_further_check = [](const Process&, const Move&) { return 0; };

/// A list as the caller passes it.
struct List {
  gaspi_number_t count;
  const gaspi_segment_id_t* segment_local;
  const gaspi_offset_t* offset_local;
  const gaspi_segment_id_t* segment_remote;
  const gaspi_offset_t* offset_remote;
  const gaspi_size_t* size;

  [[nodiscard]] Named element(gaspi_number_t i) const {
    return {segment_local[i], offset_local[i], segment_remote[i], offset_remote[i], size[i]};
  }
};

void require_list(const List& list) {
  require_pointer(list.segment_local, "segment_id_local");
  require_pointer(list.offset_local, "offset_local");
  require_pointer(list.segment_remote, "segment_id_remote");
  require_pointer(list.offset_remote, "offset_remote");
  require_pointer(list.size, "size");
  if (list.count == 0 || list.count > configuration().rw_list_elem_max)
    refuse(GASPI_ERR_INV_NUM, fmt::format("a list of {} elements, where 1 to {} are possible", list.count,
                                          configuration().rw_list_elem_max));
}

/// Keeps the memory of all segments of a list mapped.
class UseOfAll {
 public:
  explicit UseOfAll(const List& list) {
    for (gaspi_number_t i = 0; i < list.count; ++i) {
      add(list.segment_local[i]);
      add(list.segment_remote[i]);
    }
  }
  void add(gaspi_segment_id_t segment) {
    if (!has_[segment]) uses_.emplace_back(segment);
    has_[segment] = true;
  }

 private:
  std::bitset<256> has_;
  std::list<SegmentTable::Use> uses_;
};

/// The same for an operation that another thread ends.
std::shared_ptr<const void> shared_use_of(const Process& process, const List& list) {
  auto uses = std::make_shared<std::list<SegmentTable::SharedUse>>();
  for (gaspi_number_t i = 0; i < list.count; ++i) {
    uses->emplace_back(process.segments(), list.segment_local[i]);
    uses->emplace_back(process.segments(), list.segment_remote[i]);
  }
  return uses;
}

/// Reads all elements of a list. They are not the first that the call has checked: a `Move` has the parts that
/// the segments have now.
bool read_elements(const Process& process, Post& post, const List& list, const To& to) {
  std::vector<Move> moves;
  for (gaspi_number_t i = 0; i < list.count; ++i) moves.emplace_back(process, list.element(i), to.rank);
  if (std::any_of(moves.begin(), moves.end(), [&](const Move& move) { return !post.may_block(move); }))
    return std::all_of(moves.begin(), moves.end(), [&](const Move& move) { return post.read(move); });
  return post.read_in_time(moves, shared_use_of(process, list));
}

/// Reads once, after the checks.
bool read_one(Post& post, const Move& move, const Named& named) {
  if (!post.may_block(move)) [[likely]]
    return post.read(move);
  const List list{1,          &named.segment_local, &named.offset_local, &named.segment_remote, &named.offset_remote,
                  &named.size};
  return post.read_in_time({move}, shared_use_of(*Process::running(), list));
}

/// A notification that follows a list; `segment` is that of the notified rank.
struct Following {
  gaspi_segment_id_t segment;
  gaspi_notification_id_t notification;
  gaspi_notification_t value;
};

/// A call with a list: checks all elements before the first is begun.
template <bool writes>
gaspi_return_t transfer_list(const char* function, const List& list, const To& to,
                             const Following* following) noexcept {
  return call(function, [&](Process& process) {
    require_peer(process, to.rank);
    Queue& queue = queues().get(to.queue);
    require_list(list);
    UseOfAll use(list);
    for (gaspi_number_t i = 0; i < list.count; ++i) static_cast<void>(Move(process, list.element(i), to.rank));
    Flag flag{};
    if (following != nullptr) {
      use.add(following->segment);
      const int notified = writes ? static_cast<int>(to.rank) : process.rank();
      flag =
          require_flag(require_part(process, following->segment, notified), following->notification, following->value);
    }
    const std::uint32_t entries = list.count + (following == nullptr ? 0 : 1);
    if (!queue.has_room(entries)) return GASPI_QUEUE_FULL;
    Post post(process, queue, to.rank, entries, to.timeout_ms);
    if (!writes && !read_elements(process, post, list, to)) return GASPI_TIMEOUT;
    for (gaspi_number_t i = 0; i < list.count; ++i) {
      if (writes && !post.write(Move(process, list.element(i), to.rank))) return GASPI_TIMEOUT;
      writes ? count_write(to.rank, list.size[i]) : count_read(to.rank, list.size[i]);
    }
    if (following == nullptr) return GASPI_SUCCESS;
    count(Counter::notifications);
    return result_of(writes ? post.notify(flag, following->value) : post.notify_self(flag, following->value));
  });
}

}  // namespace

}  // namespace beeline::gaspi

using namespace beeline::gaspi;

gaspi_return_t pgaspi_write(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local, gaspi_rank_t rank,
                            gaspi_segment_id_t segment_id_remote, gaspi_offset_t offset_remote, gaspi_size_t size,
                            gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms) {
  return transfer("gaspi_write", {segment_id_local, offset_local, segment_id_remote, offset_remote, size},
                  {rank, queue, timeout_ms}, 1, no_further_check, [&](Post& post, const Move& move, int) {
                    count_write(rank, size);
                    return post.write(move);
                  });
}
GASPI_EXPORT(write);

gaspi_return_t pgaspi_read(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local, gaspi_rank_t rank,
                           gaspi_segment_id_t segment_id_remote, gaspi_offset_t offset_remote, gaspi_size_t size,
                           gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms) {
  const Named named{segment_id_local, offset_local, segment_id_remote, offset_remote, size};
  return transfer("gaspi_read", named, {rank, queue, timeout_ms}, 1, no_further_check,
                  [&](Post& post, const Move& move, int) {
                    if (!read_one(post, move, named)) return false;
                    count_read(rank, size);
                    return true;
                  });
}
GASPI_EXPORT(read);

gaspi_return_t pgaspi_write_notify(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local, gaspi_rank_t rank,
                                   gaspi_segment_id_t segment_id_remote, gaspi_offset_t offset_remote,
                                   gaspi_size_t size, gaspi_notification_id_t notification_id,
                                   gaspi_notification_t notification_value, gaspi_queue_id_t queue,
                                   gaspi_timeout_t timeout_ms) {
  return transfer(
      "gaspi_write_notify", {segment_id_local, offset_local, segment_id_remote, offset_remote, size},
      {rank, queue, timeout_ms}, 2,
      [&](const Process&, const Move& move) {
        const Flag flag = require_flag(move.remote, notification_id, notification_value);
        fetch_for_store(move.remote, flag);
        return flag;
      },
      [&](Post& post, const Move& move, const Flag& flag) {
        count_write(rank, size);
        count(Counter::notifications);
        return post.write_notify(move, flag, notification_value);
      });
}
GASPI_EXPORT(write_notify);

gaspi_return_t pgaspi_read_notify(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local, gaspi_rank_t rank,
                                  gaspi_segment_id_t segment_id_remote, gaspi_offset_t offset_remote, gaspi_size_t size,
                                  gaspi_notification_id_t notification_id, gaspi_queue_id_t queue,
                                  gaspi_timeout_t timeout_ms) {
  const Named named{segment_id_local, offset_local, segment_id_remote, offset_remote, size};
  return transfer(
      "gaspi_read_notify", named, {rank, queue, timeout_ms}, 2,
      [&](const Process& process, const Move&) {
        return require_flag(require_own_part(process, segment_id_local), notification_id, 1);
      },
      [&](Post& post, const Move& move, const Flag& flag) {
        if (!read_one(post, move, named)) return false;
        count_read(rank, size);
        count(Counter::notifications);
        return post.notify_self(flag, 1);
      });
}
GASPI_EXPORT(read_notify);

gaspi_return_t pgaspi_write_list(gaspi_number_t num, const gaspi_segment_id_t* segment_id_local,
                                 const gaspi_offset_t* offset_local, gaspi_rank_t rank,
                                 const gaspi_segment_id_t* segment_id_remote, const gaspi_offset_t* offset_remote,
                                 const gaspi_size_t* size, gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms) {
  return transfer_list<true>("gaspi_write_list",
                             {num, segment_id_local, offset_local, segment_id_remote, offset_remote, size},
                             {rank, queue, timeout_ms}, nullptr);
}
GASPI_EXPORT(write_list);

gaspi_return_t pgaspi_write_list_notify(
    gaspi_number_t num, const gaspi_segment_id_t* segment_id_local, const gaspi_offset_t* offset_local,
    gaspi_rank_t rank, const gaspi_segment_id_t* segment_id_remote, const gaspi_offset_t* offset_remote,
    const gaspi_size_t* size, gaspi_segment_id_t segment_id_notification, gaspi_notification_id_t notification_id,
    gaspi_notification_t notification_value, gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms) {
  const Following following{segment_id_notification, notification_id, notification_value};
  return transfer_list<true>("gaspi_write_list_notify",
                             {num, segment_id_local, offset_local, segment_id_remote, offset_remote, size},
                             {rank, queue, timeout_ms}, &following);
}
GASPI_EXPORT(write_list_notify);

gaspi_return_t pgaspi_read_list(gaspi_number_t num, const gaspi_segment_id_t* segment_id_local,
                                const gaspi_offset_t* offset_local, gaspi_rank_t rank,
                                const gaspi_segment_id_t* segment_id_remote, const gaspi_offset_t* offset_remote,
                                const gaspi_size_t* size, gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms) {
  return transfer_list<false>("gaspi_read_list",
                              {num, segment_id_local, offset_local, segment_id_remote, offset_remote, size},
                              {rank, queue, timeout_ms}, nullptr);
}
GASPI_EXPORT(read_list);

gaspi_return_t pgaspi_read_list_notify(gaspi_number_t num, const gaspi_segment_id_t* segment_id_local,
                                       const gaspi_offset_t* offset_local, gaspi_rank_t rank,
                                       const gaspi_segment_id_t* segment_id_remote, const gaspi_offset_t* offset_remote,
                                       const gaspi_size_t* size, gaspi_segment_id_t segment_id_notification,
                                       gaspi_notification_id_t notification_id, gaspi_queue_id_t queue,
                                       gaspi_timeout_t timeout_ms) {
  const Following following{segment_id_notification, notification_id, 1};
  return transfer_list<false>("gaspi_read_list_notify",
                              {num, segment_id_local, offset_local, segment_id_remote, offset_remote, size},
                              {rank, queue, timeout_ms}, &following);
}
GASPI_EXPORT(read_list_notify);
