// SPDX-License-Identifier: Apache-2.0
// Joins a world: through the launcher's rendezvous server; without a launcher, through rank 0's.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "runtime/rendezvous_file.hpp"
#include "runtime/rendezvous_protocol.hpp"
#include "runtime/socket.hpp"
#include "runtime/tcp_bootstrap.hpp"

namespace beeline {

namespace {

using detail::Deadline;

/// Sleeps briefly between two looks for another process's action.
class Pause {
 public:
  void operator()() {
    std::this_thread::sleep_for(next_);
    next_ = std::min(next_ * 2, longest);
  }

 private:
  static constexpr std::chrono::milliseconds longest{20};
  std::chrono::milliseconds next_{1};
};

/// Whether a file gives the other ranks the address at which rank 0 listens, and the secret if they have none.
bool meet_by_file(const Config& config) {
  return config.launcher.one_host || config.token.empty() || !detail::has_port(config.launcher.address);
}

detail::Readers readers_of(const Launcher& launcher) {
  return launcher.one_host ? detail::Readers::one_host : detail::Readers::several_hosts;
}

void require_meeting(const Config& config) {
  const Launcher& launcher = config.launcher;
  if (launcher.one_host) return;
  const std::string hosts = fmt::format("{} started the ranks on several hosts", launcher.name);
  require(!launcher.address.empty(), Status::invalid_argument,
          fmt::format("{}: set MASTER_ADDR and MASTER_PORT on all of them; rank 0 listens at that address, at the next "
                      "port",
                      hosts));
  require(!config.secure || !config.token.empty(), Status::invalid_argument,
          fmt::format("{}: for BEELINE_SECURE=1 set BEELINE_TOKEN to a secret, the same on all of them; without it the "
                      "ranks would share one by a file, which may cross the network as it is",
                      hosts));
}

/// The address at which rank 0 serves.
std::string address_to_serve(const Launcher& launcher, const Deadline& deadline) {
  if (launcher.one_host) return RendezvousServer::Options{}.address;
  if (detail::has_port(launcher.address)) {
    detail::await_name(launcher.address, deadline);
    return launcher.address;
  }
  const std::string own = own_address_towards(launcher.address);
  require(!own.starts_with("127.") && own != "::1", Status::invalid_argument,
          fmt::format("{} says that it runs at {}, which is no address that other hosts reach: set MASTER_ADDR and "
                      "MASTER_PORT",
                      launcher.name, launcher.address));
  return own.find(':') == std::string::npos ? own : fmt::format("[{}]", own);
}

/// Rank 0's part, with a server at `address`.
///   publish  makes the server known to the other ranks by the `config` it is given; its result withdraws the
///       publication
template <class Publish>
std::unique_ptr<Bootstrap> serve_world(Config config, const std::string& address, const Deadline& deadline,
                                       const Publish& publish) {
  auto server =
      std::make_unique<RendezvousServer>(RendezvousServer::Options{config.size, config.token, address, config.secure});
  config.rendezvous = server->address();
  auto published = publish(config);
  RendezvousServer& mine = *server;
  auto bootstrap = detail::connect_bootstrap(config, deadline, {0, std::move(server)});
  bootstrap->barrier(deadline.remaining_ns());
  // All ranks have joined. A rank that looks for rank 0 from now on must find the next world's server.
  published.reset();
  mine.close();
  bootstrap->barrier(deadline.remaining_ns());
  return bootstrap;
}

/// The other ranks' part, once rank 0's server is found.
std::unique_ptr<Bootstrap> join_served_world(const Config& config, const Deadline& deadline) {
  auto bootstrap = detail::connect_bootstrap(config, deadline, {0, nullptr});
  bootstrap->barrier(deadline.remaining_ns());
  bootstrap->barrier(deadline.remaining_ns());  // rank 0's server accepts no more connections
  return bootstrap;
}

std::unique_ptr<Bootstrap> host_world(Config config, const Deadline& deadline) {
  const Launcher launcher = config.launcher;
  const bool has_token = !config.token.empty();
  const bool by_file = meet_by_file(config);
  if (!has_token) config.token = make_token();
  const std::string address = address_to_serve(launcher, deadline);
  return serve_world(std::move(config), address, deadline, [&](const Config& served) {
    const detail::Publication publication{served.rendezvous, has_token ? "" : served.token};
    return by_file ? std::make_unique<detail::RendezvousFile>(launcher.job, publication, deadline, readers_of(launcher))
                   : nullptr;
  });
}

/// What a rank knows of rank 0's server, which it has not reached yet.
struct Search {
  std::string why_not;              ///< why the last attempt failed
  detail::PublicationLook refused;  ///< the file whose server refused the token; attempts wait for another file
};

/// Whether rank 0's file may be one that a killed rank 0 left, so that its server refuses the token. On one host the
/// file's lock, which is gone, would tell; locks do not reach from one host to another.
bool may_be_stale(const Config& config) { return meet_by_file(config) && !config.launcher.one_host; }

/// Takes note of a refusal by the server that a file names, which may be another world's.
///   is_own  whether the token is this rank's BEELINE_TOKEN, not the file's
void note_refusal(Search& search, const detail::PublicationLook& look, const Config& config, bool is_own) {
  search.refused = look;
  search.why_not = fmt::format(
      "the server at {} says \"{}\". {}, which names it, is of an earlier job, whose port this server has got{}",
      look.publication.address, detail::wrong_token, look.path,
      is_own ? fmt::format("; or the BEELINE_TOKEN of rank {} is not that of rank 0", config.rank) : "");
  log(LogLevel::warning, fmt::format("waits for another file of rank 0: {}", search.why_not), config.rank);
}

/// Tries to reach rank 0's server once. Returns nullptr, and the reason in `search`, if the server is not there yet.
std::unique_ptr<Bootstrap> try_to_join(Config config, const Deadline& deadline, Search& search) {
  const bool is_own = !config.token.empty(), is_repeated = may_be_stale(config);
  config.rendezvous = config.launcher.address;
  detail::PublicationLook look;
  if (meet_by_file(config)) {
    look = detail::look_for_publication(config.launcher.job, readers_of(config.launcher));
    if (look.found && look == search.refused) return nullptr;
    search.why_not = look.why_not;
    if (!look.found) return nullptr;
    require(!config.token.empty() || !look.publication.token.empty(), Status::invalid_argument,
            fmt::format("rank 0 was given a BEELINE_TOKEN, rank {} was not", config.rank));
    if (config.token.empty()) config.token = look.publication.token;
    config.rendezvous = look.publication.address;
  }
  try {
    return join_served_world(config, deadline);
  } catch (const detail::WrongToken&) {
    if (!is_repeated) throw;
    note_refusal(search, look, config, is_own);
  } catch (const Error& error) {
    if (error.code() != Status::unreachable) throw;
    search.why_not = error.what();
  }
  return nullptr;
}

std::unique_ptr<Bootstrap> join_rank_zero(const Config& config, const Deadline& deadline) {
  Search search;
  for (Pause pause;; pause()) {
    detail::throw_if_interrupted(config.rank);
    if (auto bootstrap = try_to_join(config, deadline, search)) return bootstrap;
    if (deadline.passed())
      throw Error(Status::deadline,
                  fmt::format("rank 0 was not found within {} s by rank {} of {} ({}): {}", deadline.total_seconds(),
                              config.rank, config.size, config.launcher.name, search.why_not),
                  config.rank);
  }
}

}  // namespace

std::unique_ptr<Bootstrap> join_world(const Config& config) {
  const Deadline deadline(config.deadline_ns);
  if (!config.rendezvous.empty()) {
    auto bootstrap = detail::connect_bootstrap(config, deadline);
    bootstrap->barrier(deadline.remaining_ns());
    return bootstrap;
  }
  require(!config.launcher.job.empty(), Status::invalid_argument,
          "no rendezvous: start ranks with `beeline run`, torchrun, mpirun or srun, or set BEELINE_RENDEZVOUS");
  require_meeting(config);
  log(LogLevel::info,
      fmt::format("joining as rank {} of {}, as {} says", config.rank, config.size, config.launcher.name), config.rank);
  return config.rank == 0 ? host_world(config, deadline) : join_rank_zero(config, deadline);
}

std::unique_ptr<Bootstrap> join_world(const Config& config, const std::string& host, const ShareText& share) {
  const Deadline deadline(config.deadline_ns);
  Config joined = config;
  require(!config.secure || !config.token.empty(), Status::invalid_argument,
          "BEELINE_SECURE=1 needs a BEELINE_TOKEN here, the same for all ranks: torch's store does not encrypt what it "
          "passes on");
  if (config.rank == 0) {
    if (!config.secure) joined.token = make_token();
    const bool version6 = host.find(':') != std::string::npos;
    return serve_world(
        std::move(joined), version6 ? fmt::format("[{}]", host) : host, deadline, [&](const Config& served) {
          static_cast<void>(share(fmt::format("{} {}", served.rendezvous, served.secure ? "" : served.token)));
          return std::unique_ptr<detail::RendezvousFile>();  // nothing to withdraw
        });
  }
  const std::string shared = share({});
  const std::size_t space = shared.find(' ');
  require(space != std::string::npos, Status::invalid_argument,
          fmt::format("rank 0 says '{}', which is not an address and a secret", shared));
  joined.rendezvous = shared.substr(0, space);
  if (!config.secure) joined.token = shared.substr(space + 1);
  return join_served_world(joined, deadline);
}

}  // namespace beeline
