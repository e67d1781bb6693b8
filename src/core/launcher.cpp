// SPDX-License-Identifier: Apache-2.0
#include "beeline/core/launcher.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/core/layout.hpp"
#include "core/environment.hpp"
#include "core/text_file.hpp"

namespace beeline {

namespace {

using detail::environment;

std::string text_of(const char* variable) { return environment(variable).value_or(""); }

/// The first of `variables` that is set; nullptr if none is.
const char* first_set(std::initializer_list<const char*> variables) {
  for (const char* variable : variables)
    if (environment(variable)) return variable;
  return nullptr;
}

/// Rank and size from two variables of one launcher.
Place place(const char* launcher, const char* rank, const char* size) {
  for (const char* variable : {rank, size})
    require(environment(variable).has_value(), Status::invalid_argument,
            fmt::format("{} is not set, though {} seems to have started this process; set BEELINE_SIZE=1 for a world "
                        "of one",
                        variable, launcher));
  Place found;
  found.launcher.name = launcher;
  found.size = detail::to_number(size, text_of(size), 1, static_cast<int>(max_ranks));
  found.rank = detail::to_number(rank, text_of(rank), 0, found.size - 1);
  return found;
}

/// A job's identity on one line: the launcher, and variables that differ between jobs.
std::string identity(const char* launcher, std::initializer_list<const char*> variables) {
  std::string text = launcher;
  for (const char* variable : variables) text += fmt::format(" {}={}", variable, text_of(variable));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// A name of the parent process that no later process has.
std::string parent() {
  const std::string line = read_text(fmt::format("/proc/{}/stat", ::getppid()));
  std::size_t at = line.rfind(')');  // the second field, a name in brackets, may contain any character
  constexpr int fields_to_start_time = 20;
  for (int field = 0; field < fields_to_start_time && at != std::string::npos; ++field) at = line.find(' ', at + 1);
  const std::string start = at == std::string::npos ? "" : line.substr(at + 1, line.find(' ', at + 1) - at - 1);
  return fmt::format(" parent={}:{}", ::getppid(), start);
}

/// Whether all ranks are on this host, by the variable `local_size`, the number of ranks on this host. True if it is
/// not set.
bool all_here(const char* local_size, int size) {
  const auto text = environment(local_size);
  return !text || detail::to_number(local_size, *text, 1, size) == size;
}

Place torchrun() {
  Place found = place("torchrun", "RANK", "WORLD_SIZE");
  // All jobs without an id have the id `none`; two such jobs cannot share a MASTER_PORT.
  found.launcher.job =
      identity("torchrun", {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"});
  found.launcher.one_host = all_here("LOCAL_WORLD_SIZE", found.size);
  return found;
}

/// The first address in an URI of Open MPI, as `891944960.0;tcp://10.66.1.1,192.168.1.1:42699`.
std::string address_in(const std::string& uri) {
  const std::size_t at = uri.find("://");
  if (at == std::string::npos) return {};
  const std::string first = uri.substr(at + 3, uri.find(',', at) - at - 3);
  return first.starts_with('[') ? first.substr(1, first.find(']') - 1) : first.substr(0, first.find(':'));
}

Place open_mpi() {
  Place found = place("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  found.launcher.one_host = all_here("OMPI_COMM_WORLD_LOCAL_SIZE", found.size);
  if (!found.launcher.one_host) {  // each host has a server of its own
    found.launcher.job = identity("mpirun", {"PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri"});
    found.launcher.address = address_in(text_of("OMPI_MCA_orte_hnp_uri"));
    return found;
  }
  // The namespace is unique only within one mpirun; the server's address distinguishes several mpiruns on a host.
  found.launcher.job = identity("mpirun", {"PMIX_NAMESPACE", "PMIX_SERVER_URI2", "OMPI_MCA_orte_hnp_uri"});
  if (first_set({"PMIX_NAMESPACE", "PMIX_SERVER_URI2", "OMPI_MCA_orte_hnp_uri"}) == nullptr)
    found.launcher.job += parent();
  return found;
}

Place hydra() {
  Place found = place("mpirun", "PMI_RANK", "PMI_SIZE");
  found.launcher.one_host = all_here("MPI_LOCALNRANKS", found.size);
  found.launcher.job = identity("mpirun", {"PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID"});
  // The ranks of a host have only one common name from Hydra: their parent, the proxy that started them.
  found.launcher.job += found.launcher.one_host ? parent() : identity("", {"MASTER_ADDR", "MASTER_PORT"});
  return found;
}

Place srun() {
  const char* size = first_set({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  Place found = place("srun", "SLURM_PROCID", size == nullptr ? "SLURM_NTASKS" : size);
  found.launcher.job = identity("srun", {"SLURM_CLUSTER_NAME", "SLURM_JOB_ID",
                                         first_set({"SLURM_STEP_ID", "SLURM_STEPID"}), "SLURM_RESTART_COUNT"});
  const char* hosts = first_set({"SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"});
  found.launcher.one_host = hosts == nullptr || text_of(hosts) == "1";
  found.launcher.address = text_of("SLURM_LAUNCH_NODE_IPADDR");
  return found;
}

/// The address at which rank 0 of a job on several hosts serves. Its port is MASTER_PORT + 1, since torch's own store
/// may use MASTER_PORT.
std::string master_address() {
  if (!environment("MASTER_ADDR") || !environment("MASTER_PORT")) return {};
  constexpr int last_port = 65534;
  const int port = detail::to_number("MASTER_PORT", text_of("MASTER_PORT"), 1, last_port);
  const std::string host = text_of("MASTER_ADDR");
  const bool version6 = host.find(':') != std::string::npos && host.front() != '[';
  return version6 ? fmt::format("[{}]:{}", host, port + 1) : fmt::format("{}:{}", host, port + 1);
}

/// Whether an environment has a variable. `began_with`: the environment in /proc, entries that end with a zero byte.
bool holds_variable(std::string_view began_with, std::string_view variable) {
  const std::string entry = fmt::format("{}=", variable);
  return began_with.starts_with(entry) || began_with.find('\0' + entry) != std::string_view::npos;
}

/// The parent of a process; 0: unknown.
pid_t parent_of(pid_t process) {
  const std::string line = read_text(fmt::format("/proc/{}/stat", process));
  const std::size_t end_of_name = line.rfind(')');  // PID (NAME) STATE PARENT ...
  return end_of_name == std::string::npos ? 0 : std::atoi(line.c_str() + std::min(end_of_name + 4, line.size()));
}

/// A launcher that may have started this process: the variable that shows it, and the function that reads its other
/// variables.
struct Candidate {
  const char* variable;
  Place (*find)();
};

/// The innermost of several launchers: the one whose variable the fewest ancestors of this process have in their
/// environment. If the system does not show environments, the first candidate.
const Candidate& innermost(const std::vector<Candidate>& candidates) {
  constexpr int most_ancestors = 64;
  pid_t process = ::getpid();
  for (int count = 0; count < most_ancestors && process > 1; ++count) {
    const std::string began_with = read_text(fmt::format("/proc/{}/environ", process));
    if (began_with.empty()) break;  // another user's process, such as a daemon that starts ranks
    for (const Candidate& each : candidates)
      if (!holds_variable(began_with, each.variable)) return each;
    process = parent_of(process);
  }
  return candidates.front();
}

/// Without a rendezvous: for instance in containers that each get a rank. Config reads rank and size.
Place beeline_launch() {
  Place found = {.launcher = {.name = "beeline"}};
  if (environment("BEELINE_RENDEZVOUS") || !environment("BEELINE_RANK") || !environment("BEELINE_SIZE")) return found;
  found.launcher.address = master_address();
  if (found.launcher.address.empty()) return found;
  found.launcher.job = identity("beeline", {"MASTER_ADDR", "MASTER_PORT", "BEELINE_SIZE"});
  found.launcher.one_host = false;
  return found;
}

}  // namespace

Place find_place() {
  const bool is_launched = environment("BEELINE_RANK") && environment("BEELINE_RENDEZVOUS");
  const bool own = is_launched || first_set({"BEELINE_RANK", "BEELINE_SIZE", "BEELINE_RENDEZVOUS"}) != nullptr;
  if (text_of("BEELINE_THREADS") == "1" || (own && !is_launched)) return beeline_launch();
  std::vector<Candidate> candidates;
  if (is_launched) candidates.push_back({"BEELINE_RANK", beeline_launch});
  if (environment("TORCHELASTIC_RUN_ID")) candidates.push_back({"TORCHELASTIC_RUN_ID", torchrun});
  if (const char* set = first_set({"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}))
    candidates.push_back({set, open_mpi});
  if (const char* set = first_set({"PMI_RANK", "PMI_SIZE"})) candidates.push_back({set, hydra});
  // A batch script's own shell has SLURM_PROCID, too, but no step.
  if (first_set({"SLURM_STEP_ID", "SLURM_STEPID"}) != nullptr && environment("SLURM_PROCID"))
    candidates.push_back({"SLURM_PROCID", srun});
  if (candidates.empty()) return {};
  Place found = (candidates.size() == 1 ? candidates.front() : innermost(candidates)).find();
  const std::string address = found.launcher.one_host ? "" : master_address();
  if (found.launcher.one_host || !address.empty()) found.launcher.address = address;
  return found;
}

}  // namespace beeline
