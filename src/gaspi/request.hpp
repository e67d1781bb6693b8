// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Requests: what application threads ask the service threads for. A request that is not complete stays pending, also
/// if the call that made it has timed out; the same call continues it.

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gaspi/failure.hpp"
#include "gaspi/segment_table.hpp"

namespace beeline::gaspi {

enum class Action : std::uint8_t {
  allocate,  ///< a segment of this rank
  create,    ///< a segment of each rank in `ranks`, registered with all of them
  announce,  ///< registers a segment of this rank with `ranks`
  remove,    ///< deletes a segment of this rank
  commit,    ///< makes the team of the group of `ranks`
  dissolve,  ///< this rank no longer uses the team `serial`
  kill,      ///< ends the process of the rank `id`
  leave      ///< ends the world, once all ranks ask for it
};
inline constexpr std::uint32_t actions = 8;

struct Request {
  Action action;
  std::uint32_t id = 0;     ///< the segment's; of groups the number on this rank
  std::uint64_t bytes = 0;  ///< of a segment
  Memory kind = Memory::none;
  bool has_flags_on_device = false;
  void* existing = nullptr;  ///< the program's memory; nullptr: new memory
  std::vector<int> ranks;    ///< world ranks, ascending
  std::uint64_t serial = 0;  ///< of a team

  bool operator==(const Request&) const = default;
};

/// The pending requests of this rank. Thread-safe.
class RequestBook {
 public:
  using Number = std::uint64_t;

  /// The number of the pending request that equals `wanted`, else of a new one, and whether it is new. Threads that
  /// make the same call share a request. Throws Failure if another request for the same object is pending. Follow each
  /// call of this function by one of `release`.
  [[nodiscard]] std::pair<Number, bool> find_or_add(const Request& wanted);
  /// Waits until a request is done, at most `limit_ns`; whether it is. Throws Failure if the request failed.
  [[nodiscard]] bool await(Number number, std::uint64_t limit_ns);
  /// Ends a call for a request. The last call removes a request that is done, and, if it gives up, one that is not.
  void release(Number number, bool gives_up);
  /// Whether a call for this object has timed out and was not called again until its end.
  [[nodiscard]] bool contains(Action action, std::uint32_t id) const;

  /// The ranks that had not made the same request in the last round, for requests that several ranks make.
  [[nodiscard]] std::vector<int> missing(Number number) const;

  // --- For the service thread -----------------------------------------------------------------------------------

  struct Numbered {
    Number number;
    Request request;
  };
  /// The requests that are not done.
  [[nodiscard]] std::vector<Numbered> pending() const;
  /// The number of the last request that was made.
  [[nodiscard]] Number made() const;
  /// Sets what `missing` returns. Ignores a request that was withdrawn.
  void note_missing(Number number, std::vector<int> ranks);
  /// Ends a request. Ignores one that was withdrawn.
  ///   value, text  of the failure; an empty text: it succeeded
  void finish(Number number, std::int32_t value, const std::string& text);
  /// Fails all requests, and all later ones. A second call does nothing.
  void close(const std::string& reason);
  /// Waits until no call is between `find_or_add` and `release`, at most `limit_ns`; whether none is. After `close` all
  /// such calls end.
  [[nodiscard]] bool await_calls(std::uint64_t limit_ns);

 private:
  struct Entry {
    Number number;
    Request request;
    int calls = 1;  ///< between `find_or_add` and `release`
    bool is_done = false, is_taken = false;
    std::int32_t value = 0;
    std::string text;
    std::vector<int> missing;
  };
  [[nodiscard]] std::list<Entry>::iterator find(Number number);

  mutable std::mutex mutex_;
  std::condition_variable done_;  ///< a request is done, or has no calls any more
  std::list<Entry> entries_;
  Number next_ = 1;
  std::string closed_;  ///< why requests fail; empty: they do not
};

}  // namespace beeline::gaspi
