// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Set-up communication: ranks of a world find each other, and exchange small data while the world is made.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "beeline/runtime/file_descriptor.hpp"
#include "beeline/runtime/health.hpp"

namespace beeline {

struct Config;

/// Set-up communication of one rank. The calls are collective over the world, in the same order on every rank, and one
/// at a time; each call ends within `deadline_ns` with an `Error` that names the ranks that are missing. When one
/// rank's deadline passes, all ranks that wait in the same call get that error. A rank that destroys its bootstrap
/// leaves the world: ranks that still wait for it get peer_died. abort(), on_abort() and health() may be called from
/// any thread.
///
/// Once a rank has failed, every call fails on every rank until the others agree on the remaining ranks; then the calls
/// are collective over the remaining ranks. They agree through the server in the launcher; if the launcher ends, all
/// ranks end.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// The bytes of all ranks, in the order of ranks; empty for ranks that have failed or left. Sizes may differ. Blocks.
  /// Throws deadline (the error names the missing ranks), peer_died, aborted.
  [[nodiscard]] virtual std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine,
                                                                      std::int64_t deadline_ns) = 0;

  /// The file descriptors of all ranks, in the order of ranks, as descriptors of this process. The caller still owns
  /// `mine`; a rank without a descriptor passes -1, and its entry is empty. The own rank's entry is a duplicate.
  [[nodiscard]] virtual std::vector<FileDescriptor> exchange_descriptors(int mine, std::int64_t deadline_ns) = 0;

  /// Restricts `exchange_descriptors` from now on to `ranks`: all ranks of this rank's node, this rank included,
  /// ascending. The entries of other ranks are empty. Before this call descriptors go to all ranks.
  virtual void set_neighbors(std::vector<int> ranks) = 0;

  /// Called, from any thread, for each rank that died, aborted, left while other ranks waited for it, or did not answer
  /// them; `culprit` is -1 if the launcher ended. For earlier failures, on_abort() itself calls it. Must not throw or
  /// call on_abort().
  using AbortHandler = std::function<void(int culprit, const std::string& reason)>;
  /// Replaces the handler (nullptr: none). The earlier handler no longer runs when on_abort() returns.
  virtual void on_abort(AbortHandler handler) = 0;

  /// Reports this rank's failure to the launcher and to every other rank. Does not throw, and blocks for at most a
  /// second. Does not call this rank's own handler.
  virtual void abort(const std::string& reason) = 0;

  /// Every rank's state as known to this rank. Does not block.
  [[nodiscard]] virtual std::vector<RankHealth> health() const = 0;

  /// Collective over the ranks that have neither failed nor left: all get the same list of these ranks, ascending. From
  /// then on calls are collective over them; the handler of on_abort() has been called for every failed rank. A rank
  /// that has not called when the first caller's deadline passes counts as failed. Throws aborted when this rank itself
  /// counts as failed, or peer_died when the launcher has ended.
  [[nodiscard]] virtual std::vector<int> agree_on_survivors(std::int64_t deadline_ns) = 0;

  /// Leaves the world, as the destructor does; only `health` may follow. For programs that end without destroying their
  /// objects.
  virtual void leave() = 0;

  /// Blocks until every rank has called it. Same errors as allgather.
  void barrier(std::int64_t deadline_ns);
};

/// Joins the world that `config` names, over TCP and, for descriptors, Unix sockets of the same user. The server is at
/// `config.rendezvous`; if that is empty, rank 0 of the launcher's job makes a server, and leaves the world last.
/// Throws unreachable (no server listens), invalid_argument (bad token or rank, a file or folder that other users can
/// access, several hosts without a token), deadline (ranks are missing).
[[nodiscard]] std::unique_ptr<Bootstrap> join_world(const Config& config);

/// Shares a text of rank 0 with the other ranks: rank 0 passes the text, the other ranks pass an empty text; returns
/// the text of rank 0. Blocks up to its own deadline, and may throw.
using ShareText = std::function<std::string(const std::string&)>;

/// Joins a world without a launcher, as rank `config.rank` of `config.size`. `share` gives the other ranks the address
/// at which rank 0 listens, and the world's secret.
///   host  the address at which rank 0 listens, on a port that the system chooses; other ranks do not use `host`
/// Throws the errors of `join_world` and of `share`.
[[nodiscard]] std::unique_ptr<Bootstrap> join_world(const Config& config, const std::string& host,
                                                    const ShareText& share);

/// Bootstraps of `size` ranks that are threads of this process; element r is for the thread of rank r.
[[nodiscard]] std::vector<std::unique_ptr<Bootstrap>> make_thread_bootstraps(int size);

/// The bootstrap of a world of one rank.
[[nodiscard]] std::unique_ptr<Bootstrap> make_single_bootstrap();

}  // namespace beeline
