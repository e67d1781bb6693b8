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
  /// Reserves a share for `owner` until `forget(owner)`; no other launch gets this share.
  void keep(const void* owner, double share, std::function<std::string()> what);
  /// The sum of all reserved shares.
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
    double share = 0;
    std::function<std::string()> what;
    std::function<bool()> is_idle;
    bool is_kept = false;
  };
  template <class Group>
  [[nodiscard]] double sum_of_largest(Group group) const;
  [[nodiscard]] bool all_fit() const;
  [[nodiscard]] std::string others(const Key& key) const;

  std::mutex mutex_;
  std::map<Key, Entry> entries_;
};

}  // namespace beeline
