// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One rank's use of UCX: a worker, an endpoint for each rank of another node, and active messages.

#include <cstddef>
#include <deque>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "transports/ucx/ucx_functions.hpp"
#include "transports/worker.hpp"

namespace beeline {

/// One of UCX's variables, without the prefix UCX_.
struct UcxSetting {
  const char *name, *value;
};

/// Used by one thread at a time.
class UcxWorker final : public TransportWorker, KeyedTransfers {
 public:
  ///   settings  apply unless the environment sets the same variables
  ///   keys      whether memory is registered, and `put` and `get` are called
  /// Throws unavailable.
  UcxWorker(WorkerEvents& events, std::span<const UcxSetting> settings, bool keys);
  ~UcxWorker() override;
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  [[nodiscard]] std::vector<std::byte> address() const override;
  void connect(int peer, std::span<const std::byte> address, const std::string& remark) override;
  bool send(int peer, const NetworkMessage& message, std::span<const std::byte> payload, std::uint64_t token,
            StagedBytes staged, DeviceKind kind) override;
  bool fetch(int peer, void* parcel, std::span<std::byte> to, std::uint64_t number, DeviceKind kind) override;
  void drop(void* parcel) override { ucx_.ucp_am_data_release(worker_, parcel); }
  [[nodiscard]] KeyedTransfers* keyed_transfers() override { return keys_ ? this : nullptr; }
  void close() override;
  void disconnect(int peer) override;
  bool progress() override { return ucx_.ucp_worker_progress(worker_) != 0; }
  [[nodiscard]] bool arm() override { return ucx_.ucp_worker_arm(worker_) == UCS_OK; }
  [[nodiscard]] int descriptor() const override { return descriptor_; }
  /// Whether UCX has transports for GPU memory.
  [[nodiscard]] bool has_gpu_memory() const;

 private:
  // KeyedTransfers
  [[nodiscard]] std::vector<std::string> links_to(int peer) const override;  ///< none before UCX 1.14
  [[nodiscard]] KeyHandle register_memory(std::span<const std::byte> memory) override;
  [[nodiscard]] std::vector<std::byte> key_of(const KeyHandle& registration) const override;
  [[nodiscard]] KeyHandle unpack_key(int peer, std::span<const std::byte> key) override;
  bool put(int peer, std::span<const std::byte> from, std::uint64_t to, const KeyHandle& key, std::uint64_t number,
           DeviceKind kind) override;
  bool get(int peer, std::span<std::byte> to, std::uint64_t from, const KeyHandle& key, std::uint64_t token) override;
  /// An endpoint. UCX has the address of this object.
  struct Line {
    UcxWorker* worker;
    int peer;
    ucp_ep_h endpoint;
  };
  /// Memory that UCX reads until a message is sent.
  struct Sending {
    UcxWorker* worker;
    NetworkMessage message;
    StagedBytes staged;
    int peer;
    std::uint64_t token;
  };

  /// A fetch, a get, or a put and the flush after it. UCX has the address of this object.
  struct Transfer {
    using Over = void (WorkerEvents::*)(int peer, std::uint64_t number, bool is_there);
    UcxWorker* worker;
    int peer;
    std::uint64_t number;
    Over over;    ///< reports the end of the transfer
    int pending;  ///< requests, and 1 while requests are being made
    ucs_status_t status;
    std::list<Transfer>::iterator self;
  };

  [[nodiscard]] std::list<Transfer>::iterator begin(int peer, std::uint64_t number, Transfer::Over over);
  [[nodiscard]] static ucp_request_param_t how_for(Transfer& transfer, DeviceKind kind);
  /// Adds a part of a transfer, by the status or request that UCX has returned.
  static void add_part(Transfer& transfer, ucs_status_ptr_t request);
  /// Called when all parts have begun. Returns whether all parts are already complete, without an error.
  bool end_begin(std::list<Transfer>::iterator transfer);
  static void on_part_over(void* request, ucs_status_t status, void* transfer);
  static ucs_status_t on_message(void* self, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* how);
  static void on_sent(void* request, ucs_status_t status, void* sending);
  static void on_error(void* line, ucp_ep_h endpoint, ucs_status_t status);
  [[nodiscard]] Sending* take_sending();
  void end_sending(Sending* sending);
  void open_context(std::span<const UcxSetting> settings);
  void open_worker();
  void close(Line& line);
  /// UCX is C: nothing may be thrown through it.
  template <class Call>
  void report(Call call) noexcept;
  void lose(int peer, ucs_status_t status) { events_.lost(peer, ucx_.ucs_status_string(status)); }

  const UcxFunctions& ucx_;
  WorkerEvents& events_;
  const bool keys_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int descriptor_ = -1;
  std::deque<Line> lines_;
  std::vector<Line*> line_of_;  ///< [ranks] nullptr: no endpoint to the rank
  std::deque<Sending> sendings_;
  std::vector<Sending*> free_;
  std::list<Transfer> transfers_, free_transfers_;
  bool closing_ = false;
};

}  // namespace beeline
