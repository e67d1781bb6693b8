// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The residency ledger: the waiting grids on each device of this process.

#include <compare>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace beeline {

/// What a grid of few blocks reserves on a device, so that its blocks find room whenever it is launched, however the
/// blocks of waiting grids are spread. Both are parts of the device's resident blocks.
struct ReservedRoom {
  double share;    ///< for the blocks of this grid
  double gap = 0;  ///< left free by all grids together; of all reservations the largest counts
};
/// The room of a grid of `blocks` blocks, of which a multiprocessor holds `per_multiprocessor`: a whole multiprocessor
/// for each block, and the block's part of a multiprocessor as the gap.
///
/// Each block finds room. A block of a grid of which a multiprocessor holds k blocks takes at most 1/k of each of its
/// resources. If a reserved block found no room, the blocks on each multiprocessor would take together more than
/// 1 - gap, and so would all blocks that are resident on the device. But the ledger grants at most 1 - gap to all
/// grids. Reserved blocks that are resident already count in their own grids' shares, which are at least what they
/// take, so one gap serves all reservations.
///
/// The share is a whole multiprocessor for each block, for two more reasons. A reserved block may keep blocks of a
/// waiting grid off its multiprocessor; those find room on the others. And kernels that use no shared memory may leave
/// a multiprocessor enough of it for one reserved block, but not for two (`load_kernel`, cuda_device.cpp).
///
/// Registers of a multiprocessor are in four parts, of which blocks take alike if they have a multiple of four warps:
/// see `blocks_of_multiprocessor` (host/impl/launch.hpp).
[[nodiscard]] ReservedRoom room_for(unsigned blocks, unsigned per_multiprocessor, int multiprocessors);

/// The ranks on a device, of whatever processes, and those of this process, which have one ledger.
struct DeviceSharers {
  int all, of_process;
};
/// A rank's share of the `resident` blocks that a device holds, without what the process's ranks reserve (`kept`).
[[nodiscard]] unsigned share_of_rank(unsigned resident, double kept, const DeviceSharers& sharers);

/// Shares of one device that are held by grids whose threads wait. A grid that could not be resident beside the others
/// would deadlock, so it is refused. One ledger for each device and process, shared by its ranks. Thread-safe.
class ResidencyLedger {
 public:
  /// The ledger of GPU `index`; each host rank makes its own.
  [[nodiscard]] static ResidencyLedger& of_gpu(int index);

  /// Books a launch. Launches of one stream run one after the other, and so do launches with the same
  /// `serialization_key` (nullptr: none) on any streams. Of such launches only the largest counts.
  ///   stream   identifies the launch's stream, or a graph
  ///   share    blocks of the launch / blocks of its kind that the device holds
  ///   what     names the launch; called for errors only
  ///   is_idle  whether the stream's work has ended; called before a launch is refused
  /// Throws no_resource, with the names of the launches that wait already.
  void claim(const void* stream, const void* serialization_key, double share, std::function<std::string()> what,
             std::function<bool()> is_idle);
  /// Reserves room for `owner` until `forget(owner)`. Throws no_resource if waiting grids hold too much.
  void keep(const void* owner, const ReservedRoom& room, std::function<std::string()> what);
  /// What is reserved: all shares, and the largest gap.
  [[nodiscard]] double kept();
  /// Forgets a stream that is being destroyed, or an owner.
  void forget(const void* stream);

 private:
  /// The two reasons for which launches run one after the other: the same stream, or the same serialization key.
  struct Key {
    const void *stream, *serialization_key;
    auto operator<=>(const Key&) const = default;
    /// The object that identifies launches that run one after the other: the key, or the stream.
    [[nodiscard]] const void* turn() const { return serialization_key == nullptr ? stream : serialization_key; }
  };
  struct Entry {
    ReservedRoom room{};
    std::function<std::string()> what;
    std::function<bool()> is_idle;
    bool is_kept = false;

    [[nodiscard]] std::string refusal(const std::string& others) const;
  };
  void book(const Key& key, Entry booked);
  template <class Group>
  [[nodiscard]] double sum_of_largest(Group group) const;
  [[nodiscard]] double largest_gap() const;
  [[nodiscard]] bool all_fit() const;
  [[nodiscard]] std::string others(const Key& key) const;

  std::mutex mutex_;
  std::map<Key, Entry> entries_;
};

}  // namespace beeline
