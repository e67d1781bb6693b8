// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The residency ledger: what waits inside kernels on each device of this process.

#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace beeline {

/// Shares of one device that are held by grids whose threads wait. A grid that could not be resident beside the others
/// would deadlock: it is refused instead. One ledger for each device and process, shared by its ranks. Thread-safe.
class ResidencyLedger {
 public:
  /// The ledger of GPU `index`; each host rank makes its own.
  [[nodiscard]] static ResidencyLedger& of_gpu(int index);

  /// Books a launch on the stream that `stream` stands for. Launches of one stream follow each other: the largest
  /// counts.
  ///   share    blocks of the launch / blocks of its kind that the device holds
  ///   what     names the launch; called for errors only
  ///   is_idle  whether the stream's work is over; asked before a launch is refused
  /// Throws no_resource, naming what waits already.
  void claim(const void* stream, double share, std::function<std::string()> what, std::function<bool()> is_idle);
  /// Forgets a stream that is being destroyed.
  void forget(const void* stream);

 private:
  struct Entry {
    double share;
    std::function<std::string()> what;
    std::function<bool()> is_idle;
  };
  [[nodiscard]] double others(const void* stream) const;

  std::mutex mutex_;
  std::map<const void*, Entry> entries_;
};

}  // namespace beeline
