// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// UCX as one rank uses it: a worker, an endpoint for each rank of another node, active messages.

#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "network/memory_keys.hpp"
#include "network/message.hpp"
#include "network/staging_buffers.hpp"
#include "network/ucx_functions.hpp"

namespace beeline {

/// What a worker tells, in `progress`, `send` and `fetch`.
class UcxReceiver {
 public:
  /// A message with its payload, which holds until this returns.
  virtual void received(const NetworkMessage& message, std::span<const std::byte> payload) = 0;
  /// A message whose payload of `bytes` waits at its sender, until it is fetched. False: it never is.
  virtual bool announced(const NetworkMessage& message, void* parcel, std::size_t bytes) = 0;
  /// What `fetch` has begun for a message of a rank is over.
  ///   is_there  or the rank is lost
  virtual void fetched(int peer, std::uint64_t number, bool is_there) = 0;
  /// The source of what `send` has begun may be reused.
  virtual void sent(std::uint64_t token) = 0;
  /// What `put` has begun is over.
  ///   is_there  it is in the target's memory; or the rank is lost
  virtual void placed(int peer, std::uint64_t number, bool is_there) = 0;
  /// Nothing goes to that rank, or comes from it, any more.
  virtual void lost(int peer, const std::string& reason) = 0;
  /// One of these functions has thrown.
  virtual void failed(const char* reason) noexcept = 0;

 protected:
  ~UcxReceiver() = default;
};

/// One of UCX's variables, without the prefix UCX_.
struct UcxSetting {
  const char *name, *value;
};

/// Used by one thread at a time.
class UcxWorker {
 public:
  ///   settings  where the environment does not say them
  ///   puts      whether memory is registered, and `put` is called
  /// Throws unavailable.
  UcxWorker(UcxReceiver& receiver, std::span<const UcxSetting> settings, bool puts);
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  /// Where others reach it.
  [[nodiscard]] std::vector<std::byte> address() const;
  /// Opens the way to a rank. Throws unreachable.
  ///   remark  at the end of the error
  void connect(int peer, std::span<const std::byte> address, const std::string& remark);

  /// Sends a message, and of its payload what lies at `payload`, which stays where it is until it is sent.
  ///   staged  owns the payload; may be empty
  ///   kind    of the payload's memory
  /// Returns true where the source may be reused at once; otherwise `sent(token)` tells.
  bool send(int peer, const NetworkMessage& message, std::span<const std::byte> payload, std::uint64_t token,
            StagedBytes staged = {}, DeviceKind kind = DeviceKind::host);
  /// Gets a payload that a rank has announced with its message of that number. Returns true where it is there at once;
  /// otherwise `fetched` tells when it is over.
  ///   kind  of the memory that it goes to
  bool fetch(int peer, void* parcel, std::span<std::byte> to, std::uint64_t number, DeviceKind kind = DeviceKind::host);
  /// Does without a payload that a rank has announced.
  void drop(void* parcel) { ucx_.ucp_am_data_release(worker_, parcel); }

  /// Whether UCX has transports for GPU memory.
  [[nodiscard]] bool has_gpu_memory() const;
  /// What UCX sends to a rank by, as it calls them; empty: it does not say, as before version 1.14.
  [[nodiscard]] std::vector<std::string> transports_to(int peer) const;

  // Memory keys. Each ends before the worker.

  /// Registers memory, so that others may put to it. Throws unavailable.
  [[nodiscard]] KeyHandle register_memory(std::span<const std::byte> memory);
  /// The key of what is registered, for others. Throws unavailable.
  [[nodiscard]] std::vector<std::byte> key_of(const KeyHandle& registration) const;
  /// The key of a rank's memory, as `key_of` gave it there. Throws unavailable.
  [[nodiscard]] KeyHandle unpack_key(int peer, std::span<const std::byte> key);
  /// Writes bytes to a rank's memory, at its address `to`. Returns true where they are in place at once; otherwise
  /// `placed` tells when they are.
  bool put(int peer, std::span<const std::byte> from, std::uint64_t to, const KeyHandle& key, std::uint64_t number);

  /// Ends all ways at once, as `disconnect` does. No key is in use from here on.
  void close();
  /// Ends the way to a rank at once: what is under way to it counts as sent, and its sources are free.
  void disconnect(int peer);

  /// Whether anything has happened.
  bool progress() { return ucx_.ucp_worker_progress(worker_) != 0; }
  /// Whether `descriptor` gets readable when there is something to progress. False: there is something now.
  [[nodiscard]] bool arm() { return ucx_.ucp_worker_arm(worker_) == UCS_OK; }
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  /// An endpoint. UCX has its address.
  struct Line {
    UcxWorker* worker;
    int peer;
    ucp_ep_h endpoint;
  };
  /// What UCX reads until a message is sent.
  struct Sending {
    UcxWorker* worker;
    NetworkMessage message;
    StagedBytes staged;
    int peer;
    std::uint64_t token;
  };

  /// A payload that is under way.
  struct Fetching {
    UcxWorker* worker;
    int peer;
    std::uint64_t number;
  };

  /// A put and the flush behind it.
  struct Placing {
    UcxWorker* worker;
    int peer;
    std::uint64_t number;
    int pending;  ///< requests, and 1 while they are made
    ucs_status_t status;
  };

  static void on_part_placed(void* request, ucs_status_t status, void* placing);
  /// A part of a put, as UCX says.
  void add_part(Placing& placing, ucs_status_ptr_t request);
  static ucs_status_t on_message(void* self, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* how);
  static void on_sent(void* request, ucs_status_t status, void* sending);
  static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* fetching);
  static void on_error(void* line, ucp_ep_h endpoint, ucs_status_t status);
  [[nodiscard]] Sending* take_sending();
  void end_sending(Sending* sending);
  void open_context(std::span<const UcxSetting> settings, bool puts);
  void open_worker();
  void close(Line& line);
  /// UCX is C: nothing may be thrown through it.
  template <class Call>
  void tell(Call call) noexcept;
  void lose(int peer, ucs_status_t status) { receiver_.lost(peer, ucx_.ucs_status_string(status)); }

  const UcxFunctions& ucx_;
  UcxReceiver& receiver_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int descriptor_ = -1;
  std::deque<Line> lines_;
  std::vector<Line*> line_of_;  ///< [ranks] nullptr: none leads there
  std::deque<Sending> sendings_;
  std::vector<Sending*> free_;
  std::list<Fetching> fetchings_;
  std::list<Placing> placings_;
  bool closing_ = false;
};

}  // namespace beeline
