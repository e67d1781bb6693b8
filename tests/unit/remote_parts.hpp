// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The parts that exchange commands with other nodes, over a worker that only stores the messages given to it.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "beeline/beeline.hpp"
#include "memory/memory_users.hpp"
#include "tests/unit/lone_context.hpp"
#include "transports/remote_exchange.hpp"

namespace beeline {

inline constexpr std::uint64_t world_secret = 77;

/// A transport in which the test decides what arrives and when an operation is complete.
class FakeWorker final : public TransportWorker, KeyedTransfers {
 public:
  struct Sent {
    NetworkMessage message;
    std::vector<std::byte> payload;
    std::uint64_t token;
  };

  [[nodiscard]] std::vector<std::byte> address() const override { return {}; }
  void connect(int, std::span<const std::byte>, const std::string&) override {}
  bool send(int, const NetworkMessage& message, std::span<const std::byte> payload, std::uint64_t token, StagedBytes,
            DeviceKind) override {
    sent.push_back({message, {payload.begin(), payload.end()}, token});
    ++sends;
    return is_quick;
  }
  bool fetch(int, void* parcel, std::span<std::byte> to, std::uint64_t number, DeviceKind) override {
    fetches[number] = to;
    EXPECT_NE(nullptr, parcel);
    return false;
  }
  void drop(void*) override { ++dropped; }
  [[nodiscard]] KeyedTransfers* keyed_transfers() override { return has_keys ? this : nullptr; }
  void close() override { is_closed = true; }
  void disconnect(int peer) override { disconnected.push_back(peer); }
  bool progress() override { return on_progress && on_progress(); }
  [[nodiscard]] bool arm() override { return true; }
  [[nodiscard]] int descriptor() const override { return -1; }

  [[nodiscard]] std::vector<std::string> links_to(int) const override { return {"rc_fake"}; }
  [[nodiscard]] KeyHandle register_memory(std::span<const std::byte>) override {
    return std::make_shared<int>(++registered);
  }
  [[nodiscard]] std::vector<std::byte> key_of(const KeyHandle&) const override { return {std::byte{9}}; }
  [[nodiscard]] KeyHandle unpack_key(int, std::span<const std::byte>) override { return std::make_shared<int>(1); }
  bool put(int, std::span<const std::byte> from, std::uint64_t to, const KeyHandle&, std::uint64_t number,
           DeviceKind) override {
    puts[number] = {from.size(), to};
    return false;
  }
  bool get(int, std::span<std::byte> to, std::uint64_t from, const KeyHandle&, std::uint64_t token) override {
    gets.push_back({to, from, token});
    return false;
  }

  /// The messages of a kind that were sent so far.
  [[nodiscard]] std::vector<Sent> of(MessageKind kind) const {
    std::vector<Sent> found;
    for (const Sent& each : sent)
      if (each.message.kind == kind) found.push_back(each);
    return found;
  }

  std::vector<Sent> sent;
  std::atomic<std::size_t> sends{0};                                    ///< number of `sent`, for any thread
  std::map<std::uint64_t, std::span<std::byte>> fetches;                ///< by number
  std::map<std::uint64_t, std::pair<std::size_t, std::uint64_t>> puts;  ///< bytes and address, by number
  struct Get {
    std::span<std::byte> to;
    std::uint64_t from, token;
  };
  std::vector<Get> gets;
  std::vector<int> disconnected;
  std::function<bool()> on_progress;  ///< returns whether anything arrived
  int dropped = 0, registered = 0;
  bool is_quick = true, has_keys = false, is_closed = false;
};

/// Parts of rank 0; rank 1 is on another node.
class RemoteParts : public LoneContext {
 protected:
  explicit RemoteParts(bool has_keys = false, bool is_staged = false, bool serves = true) {
    context_.range = reinterpret_cast<std::byte*>(memory_.data());
    context_.slots = context_.places = context_.size = 2;
    context_.heap_end = bytes;
    client_.ranks = 2;
    client_.context = context_;
    client_.address_of = [this](std::uint32_t, std::uint64_t offset) { return context_.range + offset; };
    client_.piece_at = [this](const void*) { return std::span<const std::byte>(context_.range, bytes); };
    client_.unmaps = &unmaps_;
    client_.memory_users = &users_;
    client_.is_host_memory = [](const void*) { return true; };
    client_.rings = {&ring_};
    NetworkPlan plan;
    plan.node_of = plan.host_of = {0, 1};
    plan.is_staged = {is_staged, is_staged};
    plan.world = world_secret;
    exchange_ = std::make_unique<RemoteExchange>(plan);
    auto worker = std::make_unique<FakeWorker>();
    worker_ = worker.get();
    worker_->has_keys = has_keys;
    exchange_->workers.push_back(std::move(worker));
    exchange_->peers[1].worker = worker_;
    exchange_->keys.choose(1);
    if (serves) exchange_->serve(client_);
  }

  /// Rank 1 sends the key of all its memory.
  void give_key(std::uint64_t number, std::uint64_t acknowledged) {
    NetworkMessage key = from_peer(MessageKind::key, number);
    key.acknowledged = acknowledged;
    const std::byte raw{1};
    exchange_->receiver.received(key, message_with({7, 0, bytes, 0x10000}, {&raw, 1}));
  }
  void post(const Command& command) {
    Command& slot = ring_.commands[posted_ % command_ring_depth];
    slot = command;
    slot.sequence = ++posted_;
  }
  /// A put to rank 1.
  [[nodiscard]] Command put_of(std::uint64_t remote, const void* local, std::uint64_t row_bytes) const {
    Command command{};
    command.verb = Verb::put, command.peer = 1, command.remote = remote;
    command.local = reinterpret_cast<std::uintptr_t>(local), command.rows = 1;
    command.row_bytes = command.remote_stride = command.local_stride = row_bytes;
    return command;
  }
  /// What rank 1 sends.
  [[nodiscard]] static NetworkMessage from_peer(MessageKind kind, std::uint64_t number) {
    NetworkMessage message{};
    message.world = world_secret, message.from = 1, message.kind = kind, message.number = number;
    return message;
  }
  [[nodiscard]] static NetworkMessage put_here(std::uint64_t number, std::uint64_t remote, std::uint64_t row_bytes) {
    NetworkMessage message = from_peer(MessageKind::command, number);
    message.command.verb = Verb::put, message.command.peer = 0, message.command.remote = remote;
    message.command.rows = 1;
    message.command.row_bytes = message.command.remote_stride = message.command.local_stride = row_bytes;
    return message;
  }
  void acknowledge(std::uint64_t number) {
    NetworkMessage message = from_peer(MessageKind::acknowledge, 0);
    message.acknowledged = number;
    exchange_->receiver.received(message, {});
    exchange_->turn();
  }
  [[nodiscard]] std::uint64_t completed() const { return ring_.completed.value; }
  [[nodiscard]] std::uint64_t reusable() const { return ring_.reusable.value; }

  static constexpr std::size_t bytes = std::size_t{1} << 20;
  std::vector<std::uint64_t> memory_ = std::vector<std::uint64_t>(bytes / 8);
  std::vector<std::byte> source_ = std::vector<std::byte>(256 << 10, std::byte{5});
  std::atomic<std::uint64_t> unmaps_{0};
  MemoryUsers users_;
  EngineClient client_;
  CommandRing ring_{};
  std::uint64_t posted_ = 0;
  FakeWorker* worker_ = nullptr;
  std::unique_ptr<RemoteExchange> exchange_;
};

}  // namespace beeline
