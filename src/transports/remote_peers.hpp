// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The ranks of other nodes: numbers and acknowledgements of messages, answers, failures.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "control/mapped_memory.hpp"
#include "memory/memory_users.hpp"
#include "transports/remote_peer.hpp"
#include "transports/staging.hpp"

namespace beeline {

/// A team that was aborted on another node.
struct RemoteAbort {
  std::uint32_t team;
  std::uint64_t word;
  std::string cause;
};

/// Token of messages whose sources no caller waits for.
inline constexpr std::uint64_t no_token = ~std::uint64_t{0};

/// The memory of the rank that an engine serves.
struct LocalMemory {
  LocalMemory(const EngineClient& served, bool is_staged)
      : client(served), mapped(served), user(*served.memory_users),
        staging(is_staged ? std::make_unique<Staging>(served) : nullptr) {}

  const EngineClient& client;
  MappedMemory mapped;
  MemoryUser user;
  std::unique_ptr<Staging> staging;  ///< nullptr: the CPU reads and writes all memory of this rank
};

/// Used by one thread at a time.
class RemotePeers {
 public:
  explicit RemotePeers(const NetworkPlan& plan);

  [[nodiscard]] const NetworkPlan& plan() const { return plan_; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(peers_.size()); }
  [[nodiscard]] RemotePeer& operator[](std::uint32_t rank) { return peers_[rank]; }
  [[nodiscard]] const RemotePeer& operator[](std::uint32_t rank) const { return peers_[rank]; }
  /// The ranks of other nodes whose greeting has not arrived.
  [[nodiscard]] std::vector<int> silent() const;

  /// From now on, commands of other ranks are carried out. Keeps a reference to `client`.
  void serve(const EngineClient& client) { memory_.emplace(client, plan_.stages()); }
  /// nullptr before `serve`.
  [[nodiscard]] LocalMemory* memory() { return memory_ ? &*memory_ : nullptr; }
  /// nullptr: the CPU reads and writes all memory of this rank.
  [[nodiscard]] Staging* staging() const { return memory_ ? memory_->staging.get() : nullptr; }
  /// The kind of `memory`, for a transport that reads or writes it itself.
  [[nodiscard]] DeviceKind kind_of(const RemotePeer& peer, std::span<const std::byte> memory);
  /// Whether the transport itself reads or writes a payload in GPU memory.
  [[nodiscard]] bool is_for_transport(const RemotePeer& peer, const Rows& rows);

  // Messages.

  [[nodiscard]] NetworkMessage make_message(MessageKind kind) const;
  /// Numbers and sends a message. Returns its number.
  ///   reusable  set to whether the source may be reused at once
  std::uint64_t send(std::uint32_t to, NetworkMessage message, std::span<const std::byte> payload, std::uint64_t token,
                     StagedBytes staged, bool& reusable);
  /// As above, for messages whose sources no caller waits for.
  void send(std::uint32_t to, const NetworkMessage& message, std::span<const std::byte> payload = {},
            StagedBytes staged = {}) {
    bool reusable = true;
    static_cast<void>(send(to, message, payload, no_token, std::move(staged), reusable));
  }
  /// Sends a message together with the acknowledgement of the receiver's messages. As TransportWorker::send.
  bool transmit(std::uint32_t to, NetworkMessage message, std::span<const std::byte> payload, std::uint64_t token,
                StagedBytes staged = {});
  /// Sends a message that has no number.
  void notify(std::uint32_t to, MessageKind kind, std::uint64_t value);

  // Answers, sent by `send_replies`.

  struct Reply {
    std::uint32_t to;
    NetworkMessage message;
    std::span<const std::byte> payload;
    StagedBytes staged;
  };
  /// Makes the reply to a message.
  Reply& reply(const NetworkMessage& to, MessageKind kind, std::uint64_t value);
  /// As above, to rank `to`. Copies the payload.
  Reply& reply_with(std::uint32_t to, MessageKind kind, std::uint64_t value, std::span<const std::byte> payload = {});
  bool send_replies();

  // Acknowledgements.

  /// Sends the acknowledgements that are due. Returns whether any completed message is not acknowledged yet.
  ///   idle  whether there is no other work
  bool acknowledge(bool idle);
  /// Sends all acknowledgements.
  void acknowledge_all();
  /// Asks the peers for acknowledgements that they may defer, because a caller waits for them.
  void ask();

  // Failures.

  /// Records that this rank's engine has failed: from now on no command completes.
  void fail(const std::string& text);
  void failed(const char* reason) noexcept;
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  /// Notes whether the world is aborted, from the time when waits for lost ranks are ended until the survivors have
  /// settled.
  void note_abort(bool is_aborted) { is_aborted_ = is_aborted; }
  [[nodiscard]] bool is_aborted() const { return is_aborted_; }
  /// Whether a failure, an abort or a loss was recorded since the last `end_reports`. Any thread may call it.
  [[nodiscard]] bool has_reports() const { return has_reports_.load(std::memory_order_relaxed); }
  /// Called once all that was recorded has been taken. A loss that is still to be taken stays recorded.
  void end_reports();
  [[nodiscard]] std::string take_failure() { return std::exchange(failure_, {}); }
  /// Clears all failures: commands complete again.
  void forget_failures();
  void lose(int peer, const std::string& reason);
  /// Takes the ranks whose connections were lost before `before_ns`, with the reasons.
  [[nodiscard]] std::vector<std::pair<int, std::string>> take_lost(std::uint64_t before_ns);
  void send_abort(int peer, const RemoteAbort& abort);
  void take_abort(const NetworkMessage& message, std::span<const std::byte> payload);
  [[nodiscard]] std::vector<RemoteAbort> take_aborts() { return std::exchange(aborts_, {}); }

 private:
  /// Whether an acknowledgement of a peer's completed messages is due.
  [[nodiscard]] static bool is_due(RemotePeer& peer);
  static void note_following(RemotePeer& peer);

  const NetworkPlan plan_;
  std::optional<LocalMemory> memory_;
  std::vector<RemotePeer> peers_;         ///< [ranks]
  std::vector<Reply> replies_, sending_;  ///< that wait, and that are being sent
  std::string failure_;
  bool has_failed_ = false;  ///< no command completes any more: waits end when the world is aborted
  bool is_aborted_ = false;
  std::vector<RemoteAbort> aborts_;
  std::atomic<bool> has_reports_{false};
};

}  // namespace beeline
