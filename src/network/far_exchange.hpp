// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The commands of a rank's rings as messages to ranks on other nodes, and those ranks' commands done here.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "control/command_check.hpp"
#include "control/mapped_memory.hpp"
#include "network/far_rank.hpp"
#include "network/memory_keys.hpp"
#include "network/network_engine.hpp"
#include "network/posted_commands.hpp"
#include "network/rows.hpp"
#include "network/staging.hpp"
#include "network/ucx_worker.hpp"

namespace beeline {

/// A team that was aborted on another node.
struct FarAbort {
  std::uint32_t team;
  std::uint64_t word;
  std::string cause;
};

/// Used by one thread at a time.
class FarExchange final : public UcxReceiver {
 public:
  /// Throws unavailable.
  explicit FarExchange(const NetworkPlan& plan);
  ~FarExchange();

  [[nodiscard]] std::vector<std::byte> address() const { return worker_.address(); }
  /// Opens the way to each rank of another node, and greets it. Throws unreachable.
  ///   addresses   [ranks]
  ///   devices_to  what the error says of the devices of both ranks
  void connect(const std::vector<std::span<const std::byte>>& addresses,
               const std::function<std::string(int)>& devices_to);
  /// Ranks of other nodes that have not greeted yet.
  [[nodiscard]] std::vector<int> silent() const;

  /// Whether puts to a rank may go by keys; called once it has greeted.
  void choose_keys(int peer);
  /// For people; empty: none do.
  [[nodiscard]] std::string way_of_puts_to(int peer) const;
  /// Whether UCX reads and writes this rank's GPU memory, where that is long (docs/network.md).
  [[nodiscard]] bool gives_ucx_gpu_memory() const { return plan_.is_gpu && plan_.gpu_payloads == GpuPayloads::ucx; }

  /// From here on rings are served and others' commands are done. The client stays where it is.
  void serve(const EngineClient& client);

  /// Serves a command queue, too. Throws no_resource.
  void open_queue(CarriedQueue& queue);
  /// Uses it no longer.
  void close_queue(const CarriedQueue& queue);

  /// Sends what the rings hold, up to a batch of each. Whether there was anything.
  bool send_posted();
  /// One round of everything. Whether there was anything to do.
  bool turn();
  /// Asks for acknowledgements that may wait: somebody waits for them.
  void ask();
  /// Sends those that may wait.
  void acknowledge_all();
  [[nodiscard]] bool has_posted() const;
  /// See UcxWorker.
  [[nodiscard]] bool arm() { return worker_.arm(); }
  [[nodiscard]] int descriptor() const { return worker_.descriptor(); }
  void send_abort(int peer, const FarAbort& abort);

  // A piece of this rank's memory that is about to be unmapped, by its first byte.

  /// Gives no further keys of it, and takes back those that others have. Returns false if there are none.
  [[nodiscard]] bool end_keys(const std::byte* start);
  /// Live ranks that have not given theirs back.
  [[nodiscard]] std::vector<int> holders_of(const std::byte* start) const;
  /// UCX lets nobody write to it any more.
  void unregister(const std::byte* start);
  /// It has been unmapped, or stays: then others may ask for its key again.
  void forget_keys(const std::byte* start);

  [[nodiscard]] NetworkStatistics statistics() const;

  /// Whether a source in this rank's memory is in use, or will be, of what goes to that rank.
  [[nodiscard]] bool reads_sources_for(int peer) const;
  /// Whether that rank has done all that this one has sent, and answered it; so of one that is lost.
  [[nodiscard]] bool is_settled(int peer) const;
  /// How far what goes to a rank has come: it grows.
  [[nodiscard]] std::uint64_t progress_of(int peer) const;
  /// Gives a rank up: nothing goes there any more. What was under way to it counts as done once `end_lost` is called.
  void give_up(int peer, const std::string& reason);
  [[nodiscard]] bool is_lost(int peer) const { return ranks_[static_cast<std::size_t>(peer)].is_lost(); }
  [[nodiscard]] bool is_far(int peer) const { return ranks_[static_cast<std::size_t>(peer)].is_far; }
  void failed(const char* reason) noexcept override;
  /// As if nothing had failed: commands count as in place again.
  void forget_failures();

  // What has come up since the last call.
  [[nodiscard]] std::string take_failure() { return std::exchange(failure_, {}); }
  [[nodiscard]] std::vector<FarAbort> take_aborts() { return std::exchange(aborts_, {}); }
  /// Once the world has been aborted: what waits for answers that will not come waits no longer, and commands to ranks
  /// that are lost count as done.
  void end_lost();
  /// Connections that were lost before that time, and why.
  [[nodiscard]] std::vector<std::pair<int, std::string>> take_lost(std::uint64_t before_ns);

 private:
  /// A command's index in its ring takes so many bits of what messages call it; the ring's number is above.
  static constexpr std::uint32_t index_bits = 8;
  static_assert(PostedCommands::depth <= 1u << index_bits);
  /// Of messages whose sources nobody waits for.
  static constexpr std::uint64_t no_token = ~std::uint64_t{0};
  static constexpr std::uint32_t most_rings = 1u << (32 - index_bits);

  struct Reply {
    int to;
    NetworkMessage message;
    std::span<const std::byte> payload;
    StagedBytes staged;
  };
  /// What came with a message.
  struct Payload {
    std::span<const std::byte> bytes;
    StagedBytes owned;       ///< where they are, unless they are UCX's
    bool is_placed = false;  ///< they lie where they belong
  };

  // UcxReceiver
  void received(const NetworkMessage& message, std::span<const std::byte> payload) override;
  bool announced(const NetworkMessage& message, void* parcel, std::size_t bytes) override;
  void fetched(int peer, std::uint64_t number, bool is_there) override;
  void sent(std::uint64_t token) override;
  void placed(int peer, std::uint64_t number, bool is_there) override;
  void lost(int peer, const std::string& reason) override;

  [[nodiscard]] FarRank* sender_of(const NetworkMessage& message);
  [[nodiscard]] FarRank& far(std::uint32_t rank) { return ranks_[rank]; }
  /// The same, where it may send this message now: keeps what it says of this rank's messages.
  [[nodiscard]] FarRank* sender_in_turn(const NetworkMessage& message);
  enum class Fetch { begun, later, unwanted };
  /// Begins to get a payload, straight to its place where that takes it: unless its place is about to be unmapped, or
  /// it is too long for a buffer.
  Fetch fetch(Arrival& arrival);
  Fetch fetch_to_buffer(Arrival& arrival);
  void begin_fetch(Arrival& arrival, std::span<std::byte> to);
  void end_hold(Arrival& arrival);
  /// Begins to get the payloads of later messages: the wire has work while one payload is copied. They go to buffers of
  /// the rank's device, or to places that no message before them reads or writes.
  void fetch_ahead(FarRank& from);
  /// Adds what a message reads and writes of this rank's memory. Returns false where it is going to be refused.
  bool add_places(const NetworkMessage& message, std::vector<std::span<const std::byte>>& used);
  /// Does the messages that are kept and next.
  void do_kept(FarRank& from);
  /// Whether all that a message takes is there, and there is room to do it.
  [[nodiscard]] bool is_ready(Arrival& next);
  /// Where a payload of rows that need no unpacking goes; empty: to a buffer first.
  [[nodiscard]] std::span<std::byte> place_of(const NetworkMessage& message, std::size_t bytes);
  void perform(const NetworkMessage& message, Payload payload);
  void perform_command(const NetworkMessage& message, Payload payload);
  /// Does a command without a signal, whose places have been checked. Returns false where it is refused.
  bool do_command(const NetworkMessage& message, const CommandTarget& target, Payload payload);
  bool stage_command(const NetworkMessage& message, const Rows& rows, Payload payload);
  void take_answer(const NetworkMessage& message, Payload payload);
  void end_answer(const NetworkMessage& message, PostedCommand& posted);
  void stage_answer(const NetworkMessage& message, PostedCommand& posted, const Rows& rows, Payload payload);
  /// The payload, where the device may copy it.
  [[nodiscard]] StagedBytes staged(Payload payload);
  /// The message that is being done has been, or its device does it.
  void end_arrival(FarRank& from);
  /// The device has done a message.
  void settle(FarRank& from, std::uint64_t number);
  /// Whether a further message may be done.
  [[nodiscard]] bool has_room() const { return staging_ == nullptr || staging_->may_change(); }
  void reply(const NetworkMessage& to, MessageKind kind, std::uint64_t value);
  void reply_with(int to, MessageKind kind, std::uint64_t value, std::span<const std::byte> payload = {});
  void reply_rows(const NetworkMessage& to, const Rows& rows);
  void refuse(const NetworkMessage& message, const std::string& reason);
  void take_refusal(const NetworkMessage& message, std::span<const std::byte> payload);
  void take_abort(const NetworkMessage& message, std::span<const std::byte> payload);

  /// The command of a ring that is sent next, if its target has room for it.
  [[nodiscard]] PostedCommand* next_of(PostedCommands& ring);
  void begin(PostedCommands& ring, PostedCommand& posted);
  [[nodiscard]] bool may_send(const PostedCommand& posted) const;
  /// Of a row of a command that moves bytes, in one message.
  [[nodiscard]] std::uint64_t most_bytes(const PostedCommands& ring, const PostedCommand& posted) const;
  [[nodiscard]] static Cut cut_for(const PostedCommand& posted) {
    return cut_of(without_signal(posted.command), posted.most_bytes);
  }
  void send_piece(std::uint32_t number, PostedCommands& ring, PostedCommand& posted);
  /// The bytes of rows one behind the other; nullptr: they are not there.
  [[nodiscard]] StagedBytes packed(const Rows& rows, bool is_checked);
  /// Puts bytes into rows; false: these are not there.
  [[nodiscard]] bool unpack(const Rows& rows, bool is_checked, std::span<const std::byte> bytes);
  /// A command of this rank is refused.
  void refuse_own(PostedCommands& ring, PostedCommand& posted, const std::string& reason);
  void send_command(const NetworkMessage& message, PostedCommand& posted, std::span<const std::byte> payload,
                    StagedBytes staged);
  void send_staged(NetworkMessage message, PostedCommands& ring, PostedCommand& posted, const Rows& rows);
  [[nodiscard]] static bool may_have_keys(const NetworkPlan& plan);
  /// The key by which part of a put goes; nullptr: it goes in a message.
  [[nodiscard]] FarKey* key_for(std::uint32_t peer, const Command& part);
  void ask_key(int peer, std::uint64_t offset);
  void take_key(const NetworkMessage& message, std::span<const std::byte> payload);
  void take_end_of_key(const NetworkMessage& message);
  void send_by_key(NetworkMessage message, PostedCommand& posted, std::span<const std::byte> data, FarKey& key);
  /// Keeps what the last message to its rank reads and writes there.
  void add_footprint(const NetworkMessage& message);
  /// The piece of this rank's memory that contains an address, registered; nullptr: others get no key of it.
  [[nodiscard]] KeyedPiece* piece_for_key(const std::byte* address);
  void give_key(const NetworkMessage& message);
  /// Numbers a message, and sends it. Returns its number.
  std::uint64_t send(int to, NetworkMessage message, std::span<const std::byte> payload, std::uint64_t token,
                     StagedBytes staged, bool& reusable);
  [[nodiscard]] NetworkMessage make_message(MessageKind kind) const;
  /// Sends a message, with the acknowledgement of what the receiver has sent. As UcxWorker::send.
  bool transmit(int to, NetworkMessage message, std::span<const std::byte> payload, std::uint64_t token,
                StagedBytes staged = {});
  /// nullptr: no ring, or no command that is under way, is called so.
  [[nodiscard]] PostedCommands* ring_of(std::uint32_t request);
  [[nodiscard]] PostedCommand* posted_of(std::uint32_t request);
  bool send_replies();
  void acknowledge(bool idle);
  /// Whether what a rank does not know to be done is acknowledged now.
  [[nodiscard]] static bool is_due(FarRank& rank);
  /// Sends a message that has no number.
  void tell(int to, MessageKind kind, std::uint64_t value);
  /// Whether the acknowledgement of a command may wait.
  [[nodiscard]] bool acknowledgement_may_wait(const PostedCommands& ring, const PostedCommand& posted) const;
  void advance();
  void fail(const std::string& text);
  /// Whether a payload in GPU memory is for UCX itself.
  [[nodiscard]] bool is_for_ucx(const Rows& rows);
  /// Of memory that payloads lie in.
  [[nodiscard]] DeviceKind kind_of(std::span<const std::byte> memory);

  /// Of memory that payloads are fetched to.
  class Holds {
   public:
    ~Holds() {
      while (count_ > 0) release();
    }
    [[nodiscard]] bool try_hold(MemoryUsers& users) {
      if (!users.try_hold()) return false;
      users_ = &users, ++count_;
      return true;
    }
    void release() { users_->release(), --count_; }

   private:
    MemoryUsers* users_ = nullptr;
    int count_ = 0;
  };

  const NetworkPlan plan_;
  Holds holds_;                       ///< end behind the fetches
  bool is_put_off_ = false;           ///< a fetch is to be tried again
  std::unique_ptr<Staging> staging_;  ///< nullptr: the CPU reads and writes all memory of this rank
  std::vector<FarRank> ranks_;        ///< [ranks]
  UcxWorker worker_;                  ///< ends before the buffers that it reads and writes
  KeyedPieces keyed_pieces_;          ///< of this rank
  NetworkStatistics statistics_;
  const EngineClient* client_ = nullptr;
  std::optional<MappedMemory> memory_;
  std::optional<MemoryUser> memory_user_;
  std::map<std::uint32_t, PostedCommands> rings_;  ///< by number, which none gets that another had
  std::uint32_t next_ring_ = 0;
  std::vector<Reply> replies_;
  std::string failure_;
  bool has_failed_ = false;  ///< nothing counts as in place: who waits for it ends with the world
  std::vector<FarAbort> aborts_;
};

}  // namespace beeline
