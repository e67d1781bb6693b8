// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "guardian.hpp"
#include "process_table.hpp"
#include "rank_process.hpp"
#include "remote.hpp"
#include "standard_input.hpp"
#include "torch_variables.hpp"

namespace beeline::launch {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto end_time = 3s;          // for the other ranks to end by themselves, once one rank has failed
constexpr auto termination_time = 2s;  // from SIGTERM to SIGKILL
constexpr auto last_output_time = 500ms;
constexpr auto reader_time = 1s;       // after a job that failed: for a reader to take more of its output
constexpr auto greeting_time = 9s;     // for a host to start a rank; ssh itself gives up a connection before
constexpr int ssh_failed = 255;        // ssh's exit code for an error of its own
constexpr auto insists_after = 200ms;  // an earlier signal may be the first one again, sent to the process group

/// Returns a descriptor from which the job reads its signals, which are blocked.
FileDescriptor take_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  const sigset_t set = handled_signals();
  FileDescriptor descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  require(static_cast<bool>(descriptor), Status::no_resource, "no signalfd for the launcher");
  return descriptor;
}

/// Ranks that are threads hold all descriptors that ranks pass to each other while a world is made: 64 x 64.
void allow_open_files() {
  constexpr rlim_t wanted = 16384;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// The deadline of the ranks' waits.
std::chrono::nanoseconds deadline_of(const Options& options) {
  return std::chrono::nanoseconds(options.deadline_s ? std::llround(*options.deadline_s * 1e9)
                                                     : options.environment.deadline_ns);
}

/// The rank that a rank's error message names as its cause; -1 if none.
int cause_in(const std::deque<std::string>& lines) {
  constexpr std::string_view mark = ": because of rank ";
  for (const std::string& line : lines)
    if (const std::size_t at = line.find(mark); at != std::string::npos)
      return std::atoi(line.c_str() + at + mark.size());
  return -1;
}

/// Whether the lines hold `reason` without its first two parts: the rank that aborted, and the error's code.
bool holds(const std::deque<std::string>& lines, std::string reason) {
  for (int prefix = 0; prefix < 2; ++prefix)
    if (const std::size_t at = reason.find(": "); at != std::string::npos) reason.erase(0, at + 2);
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(reason) != std::string::npos; });
}

bool contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

/// Whether the process of a rank gets standard input; `rank` -1 is the process of all ranks.
bool gets_input(const Options& options, int rank) {
  const std::string choice = options.standard_input.value_or(options.hosts.empty() ? "0" : "none");
  return choice != "none" && (rank <= 0 || choice == "all");
}

std::optional<StandardInput> input_for(const Options& options) {
  return gets_input(options, 0) ? std::optional<StandardInput>(std::in_place) : std::nullopt;
}

class Job {
 public:
  Job(const Options& options, int guardian);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  int run();

 private:
  void start_processes();
  [[nodiscard]] Process start_here(int rank) const;
  [[nodiscard]] Process start_there(int rank) const;
  [[nodiscard]] Environment environment(int rank) const;
  void wait_for_events();
  void take_signal(int signal);
  void end_by_signal();
  void suspend(bool suspended);
  [[nodiscard]] bool in_grace() const { return grace_ends_at_ != Clock::time_point::max(); }
  [[nodiscard]] bool is_rank(pid_t pid) const;
  void lose_guardian();
  void check_processes();
  void check_server();
  void go_on_without(std::size_t index);
  void end_outcasts();
  void begin_end(int culprit);
  void lose_output(int fault);
  void enforce_end();
  void end_stopped();
  void look_for_standstill();
  void report_silent_hosts();
  [[nodiscard]] bool stands_still() const;
  void signal_running(int signal) const;
  void finish_output();
  void flush_console();
  void find_cause();
  [[nodiscard]] bool all_ended() const;
  [[nodiscard]] bool is_given_up(const RankProcess& process) const;
  [[nodiscard]] std::vector<std::string> report() const;
  [[nodiscard]] std::string describe_end(const RankProcess& process, bool with_reason = true) const;
  [[nodiscard]] std::string reason_of(const RankProcess& process) const;
  [[nodiscard]] int exit_code() const;

  Options options_;
  std::string path_;
  FileDescriptor signals_;
  std::optional<StandardInput> input_;  ///< made before the first thread, because it forks
  Console console_;
  int guardian_;
  std::string token_;
  std::optional<RendezvousServer> server_;  ///< none when the ranks are threads
  std::optional<TorchVariables> torch_;     ///< none when the ranks are threads
  std::vector<RankProcess> processes_;
  bool ending_ = false;    ///< a rank failed: all must end
  int culprit_ = -1;       ///< index in processes_ of the process that failed first; -1: none of them
  int interrupt_ = 0;      ///< signal that ended the job, if one did
  int signals_taken_ = 0;  ///< signals that end the job, also the repeated ones of a user who insists
  Clock::time_point interrupted_at_;
  Clock::time_point grace_ends_at_ = Clock::time_point::max();  ///< until then ranks may go on after SIGTERM
  bool suspended_ = false;                                      ///< by SIGTSTP
  bool needs_room_ = true;                                      ///< ranks wait for a reader of their output
  int output_fault_ = 0;                                        ///< why the output cannot be written: an errno
  int next_signal_ = SIGTERM;                                   ///< for ranks that have not ended by next_signal_at_
  Clock::time_point next_signal_at_ = Clock::time_point::max();
  Clock::time_point end_began_at_;
  std::vector<int> terminated_;              ///< ranks that did not end by themselves
  std::chrono::duration<double> end_limit_;  ///< their time to end: less than `end_time` if the user insisted
  Clock::time_point beginning_due_at_ = Clock::time_point::max();  ///< when the next unfinished line is printed
  bool children_changed_ = false;                                  ///< a child has ended, stopped or continued
  Clock::time_point standstill_ends_at_ = Clock::time_point::max();
  Clock::time_point silence_ends_at_ = Clock::time_point::max();  ///< when hosts that have not answered are reported
  std::vector<int> stopped_;   ///< ranks that a signal had stopped, which therefore could not end
  std::vector<int> given_up_;  ///< keep_going: ranks that count as failed, by their exit or by other ranks' reports
  std::vector<int> outcasts_;  ///< of these the ones that were killed because they hung
};

Job::Job(const Options& options, int guardian)
    : options_(options), path_(find_program(options.command.front())), signals_(take_signals()),
      input_(input_for(options)), guardian_(guardian) {
  allow_open_files();
  adopt_orphans();
  if (options_.threads) return;
  torch_.emplace(options_);
  token_ = make_token();
  if (options_.bind.empty()) options_.bind = options_.hosts.empty() ? "127.0.0.1" : address_for(options_.hosts);
  server_.emplace(RendezvousServer::Options{options_.ranks, token_, options_.bind, options_.secure});
}

Job::~Job() {
  for (const RankProcess& each : processes_) each.signal_group(SIGKILL);
  end_children();
  for (RankProcess& each : processes_) each.reap();
}

Environment Job::environment(int rank) const {
  Environment changes = {{"BEELINE_SIZE", fmt::format("{}", options_.ranks)},
                         {"BEELINE_THREADS", options_.threads ? "1" : "0"},
                         {"BEELINE_RANK", options_.threads ? "" : fmt::format("{}", rank)},
                         {"BEELINE_RENDEZVOUS", server_ ? server_->address() : ""},
                         {"BEELINE_TOKEN", token_}};
  if (options_.device) changes["BEELINE_DEVICE"] = *options_.device;
  if (torch_) torch_->add_to(changes, rank);
  if (options_.split_nodes) changes["BEELINE_SPLIT_NODES"] = fmt::format("{}", *options_.split_nodes);
  if (options_.secure) changes["BEELINE_SECURE"] = "1";
  if (options_.check) changes["BEELINE_CHECK"] = "1";
  if (options_.deadline_s) changes["BEELINE_DEADLINE_S"] = fmt::format("{}", *options_.deadline_s);
  // Lazy loading of kernels would block behind a waiting kernel; each stream that waits needs its own connection.
  const Environment defaults = {{"CUDA_MODULE_LOADING", "EAGER"}, {"CUDA_DEVICE_MAX_CONNECTIONS", "32"}};
  for (const auto& [variable, value] : defaults)
    if (std::getenv(variable.c_str()) == nullptr) changes[variable] = value;
  return changes;
}

void Job::start_processes() {
  const int count = options_.threads ? 1 : options_.ranks;
  processes_.reserve(static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank)
    processes_.emplace_back(options_.threads ? -1 : rank, options_.hosts.empty() ? start_here(rank) : start_there(rank),
                            options_, console_);
  if (!input_) return;
  for (RankProcess& each : processes_)
    if (gets_input(options_, each.rank())) input_->add(each.take_input());
}

Process Job::start_here(int rank) const {
  const bool has_input = input_ && gets_input(options_, rank);
  return start(path_, options_.command, environment(rank), has_input ? std::optional<std::string>("") : std::nullopt);
}

Process Job::start_there(int rank) const {
  const std::string& host = options_.hosts[host_index(options_, rank)];
  const std::vector<std::string> command = remote_command(options_, path_, host, environment(rank));
  return start(find_program(command.front()), command, {}, token_ + "\n");
}

int Job::run() {
  start_processes();
  if (!options_.hosts.empty()) silence_ends_at_ = Clock::now() + greeting_time;
  while (!all_ended()) {
    wait_for_events();
    check_processes();
    check_server();
    look_for_standstill();
    report_silent_hosts();
    enforce_end();
  }
  grace_ends_at_ = standstill_ends_at_ = silence_ends_at_ = Clock::time_point::max();
  end_children();  // processes that the ranks left behind
  finish_output();
  find_cause();
  for (const std::string& line : report()) console_.report(line);
  flush_console();
  return exit_code();
}

bool Job::all_ended() const {
  return std::all_of(processes_.begin(), processes_.end(), [](const RankProcess& each) { return each.ending(); });
}

void Job::wait_for_events() {
  std::vector<pollfd> set = {{signals_.get(), POLLIN, 0},
                             {server_ && !ending_ && !in_grace() ? server_->failure_descriptor() : -1, POLLIN, 0},
                             {interrupt_ == SIGKILL ? -1 : guardian_, POLLIN, 0},
                             {console_.descriptor(), POLLIN, 0}};
  if (input_) input_->append_to(set);
  for (const RankProcess& each : processes_) each.append_to(set, needs_room_);
  int milliseconds = -1;
  const auto next =
      std::min({next_signal_at_, standstill_ends_at_, silence_ends_at_, grace_ends_at_, beginning_due_at_});
  if (next != Clock::time_point::max()) {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
    milliseconds = static_cast<int>(std::max<std::int64_t>(rest.count(), 0));
  }
  ::poll(set.data(), set.size(), milliseconds);
  console_.lower();
  if (input_) input_->move();
  beginning_due_at_ = Clock::time_point::max();
  for (RankProcess& each : processes_) {
    each.pump(needs_room_);
    beginning_due_at_ = std::min(beginning_due_at_, each.print_beginnings(Clock::now()));
  }
  lose_output(console_.fault());
  if (set[2].revents != 0) lose_guardian();
  signalfd_siginfo information;
  while (::read(signals_.get(), &information, sizeof(information)) == sizeof(information)) {
    if (information.ssi_signo != SIGCHLD) {
      take_signal(static_cast<int>(information.ssi_signo));
      continue;
    }
    children_changed_ = true;
    reap_orphans([this](pid_t pid) { return is_rank(pid); });
    if (ending_) end_stopped();
  }
}

/// Whether at least one rank has ended, and a signal has stopped all the others.
bool Job::stands_still() const {
  if (std::none_of(processes_.begin(), processes_.end(), [](const RankProcess& each) { return each.ending(); }))
    return false;
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const RankProcess& each) { return each.ending() || each.is_stopped(); });
}

/// Ends the job if every rank that has not ended stays stopped for the deadline: no rank runs that would notice.
void Job::look_for_standstill() {
  if (!std::exchange(children_changed_, false) && Clock::now() < standstill_ends_at_) return;
  if (ending_ || suspended_ || all_ended() || !stands_still()) {
    standstill_ends_at_ = Clock::time_point::max();
  } else if (standstill_ends_at_ == Clock::time_point::max()) {
    standstill_ends_at_ = Clock::now() + deadline_of(options_);
  } else if (Clock::now() >= standstill_ends_at_) {
    const auto stopped =
        std::find_if(processes_.begin(), processes_.end(), [](const RankProcess& each) { return !each.ending(); });
    begin_end(static_cast<int>(stopped - processes_.begin()));
  }
}

/// The ranks' own errors would name such a host only at their deadline.
void Job::report_silent_hosts() {
  if (Clock::now() < silence_ends_at_) return;
  silence_ends_at_ = Clock::time_point::max();
  for (const RankProcess& each : processes_)
    if (!each.ending() && !each.history().has_greeting())
      console_.report(fmt::format(
          "beeline-launch: no answer for {} s from {}, where '{}' (pid {}) was to start rank {}", greeting_time.count(),
          options_.hosts[host_index(options_, each.rank())], options_.ssh, each.pid(), each.rank()));
}

bool Job::is_rank(pid_t pid) const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [pid](const RankProcess& each) { return each.pid() == pid; });
}

void Job::lose_guardian() {
  grace_ends_at_ = Clock::time_point::max();
  if (!ending_) begin_end(-1);
  interrupt_ = next_signal_ = SIGKILL;
  next_signal_at_ = Clock::now();
}

void Job::take_signal(int signal) {
  if (signal == SIGTSTP || signal == SIGCONT) return suspend(signal == SIGTSTP);
  if (signal != SIGTERM && signal != SIGINT && signal != SIGQUIT) {  // the program gives the signal its meaning
    for (const RankProcess& each : processes_)
      if (!each.ending()) each.signal_process(signal);
    return;
  }
  if (interrupt_ != 0 && Clock::now() < interrupted_at_ + insists_after) return;
  ++signals_taken_;
  if (interrupt_ != 0) {  // the user insists
    end_by_signal();
    next_signal_at_ = Clock::now();
    return;
  }
  interrupt_ = signal;
  interrupted_at_ = Clock::now();
  if (suspended_) suspend(false);
  signal_running(signal);
  if (signal != SIGTERM || ending_) return end_by_signal();
  end_stopped();
  grace_ends_at_ = Clock::now() + std::chrono::round<Clock::duration>(std::chrono::duration<double>(options_.grace_s));
}

/// Called after the ranks were sent the signal: ends the world, and with it all waits.
void Job::end_by_signal() {
  grace_ends_at_ = Clock::time_point::max();
  if (server_) server_->abort(-1, fmt::format("the launcher got {}", signal_name(interrupt_)));
  if (!ending_) begin_end(-1);
  next_signal_ = SIGKILL;
}

void Job::suspend(bool suspended) {
  suspended_ = suspended;
  signal_running(suspended ? SIGTSTP : SIGCONT);
}

void Job::check_processes() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    RankProcess& process = processes_[i];
    if (process.ending()) continue;
    process.check();
    if (!process.ending() || ending_ || in_grace()) continue;
    if (server_ && process.ending()->success()) server_->expect_no_more(process.rank());
    if (process.ending()->success()) continue;
    if (options_.keep_going) {
      go_on_without(i);
      continue;
    }
    check_server();  // the death of another rank may be the cause of this failure
    if (ending_) continue;
    begin_end(static_cast<int>(i));
    if (server_) server_->abort(process.rank(), describe_end(process));
  }
}

void Job::go_on_without(std::size_t index) {
  const RankProcess& process = processes_[index];
  if (culprit_ < 0) culprit_ = static_cast<int>(index);
  given_up_.push_back(process.rank());
  const std::string end = describe_end(process);
  server_->abort(process.rank(), end);
  console_.report(fmt::format("beeline-launch: {}; the others may go on (--keep-going)", end));
}

bool Job::is_given_up(const RankProcess& process) const { return contains(given_up_, process.rank()); }

/// Kills ranks that the other ranks have given up and that may hang. This is immediate, so that such a rank does not
/// write into the memory of ranks that go on.
void Job::end_outcasts() {
  for (const WorldFailure& failure : server_->take_failures()) {
    if (failure.culprit < 0) continue;
    if (culprit_ < 0) culprit_ = failure.culprit;
    given_up_.push_back(failure.culprit);
    const bool hangs = failure.noticed_by >= 0 && failure.noticed_by != failure.culprit;
    RankProcess& process = processes_[static_cast<std::size_t>(failure.culprit)];
    if (!hangs || process.ending()) continue;
    process.signal_group(SIGKILL);
    outcasts_.push_back(failure.culprit);
  }
  // No rank goes on: those that still run were given up, and get their time to end.
  const auto is_left = [&](const RankProcess& each) { return !each.ending() && !contains(outcasts_, each.rank()); };
  if (std::any_of(processes_.begin(), processes_.end(), is_left) &&
      std::all_of(processes_.begin(), processes_.end(),
                  [&](const RankProcess& each) { return !is_left(each) || is_given_up(each); }))
    begin_end(culprit_ >= 0 ? culprit_ : given_up_.front());
}

void Job::check_server() {
  if (!server_ || ending_ || in_grace()) return;
  if (options_.keep_going) return end_outcasts();
  if (const auto failure = server_->failure()) begin_end(failure->culprit);
}

void Job::begin_end(int culprit) {
  ending_ = true;
  culprit_ = culprit;
  end_began_at_ = Clock::now();
  next_signal_at_ = end_began_at_ + end_time;
  end_stopped();
}

/// Kills the ranks that a signal has stopped: they take no part in the job's end, and react to no other signal.
void Job::end_stopped() {
  const std::vector<ListedProcess> all = listed_processes();
  for (const RankProcess& each : processes_) {
    const bool stopped = each.is_stopped() || std::any_of(all.begin(), all.end(), [&](const ListedProcess& process) {
                           return process.group == each.pid() && process.stopped();
                         });
    if (!stopped || each.ending()) continue;
    if (!contains(stopped_, each.rank())) stopped_.push_back(each.rank());
    each.signal_group(SIGKILL);
  }
}

/// Ends the job because its output can no longer be written; `fault` is the errno, 0 if output can be written.
void Job::lose_output(int fault) {
  if (fault == 0 || output_fault_ != 0) return;
  output_fault_ = fault;
  if (interrupt_ == 0) signal_running(SIGTERM);
  if (interrupt_ == 0 || in_grace()) {
    interrupt_ = SIGTERM;
    end_by_signal();
  }
  interrupt_ = SIGPIPE;
}

void Job::enforce_end() {
  if (Clock::now() >= grace_ends_at_) end_by_signal();
  if (Clock::now() < next_signal_at_) return;
  if (terminated_.empty()) {
    end_limit_ = std::min<std::chrono::duration<double>>(Clock::now() - end_began_at_, end_time);
    for (const RankProcess& each : processes_)
      if (!each.ending()) terminated_.push_back(each.rank());
  }
  signal_running(next_signal_);
  next_signal_at_ = next_signal_ == SIGTERM ? Clock::now() + termination_time : Clock::time_point::max();
  next_signal_ = SIGKILL;
}

void Job::signal_running(int signal) const {
  for (const RankProcess& each : processes_)
    if (!each.ending()) each.signal_group(signal);
}

void Job::finish_output() {
  const auto end = Clock::now() + last_output_time;  // a process that left its group may hold a pipe open for ever
  const auto open = [&] {
    return std::any_of(processes_.begin(), processes_.end(), [](const RankProcess& each) { return each.has_output(); });
  };
  needs_room_ = false;  // the pipes hold little
  next_signal_at_ = end;
  while (open()) {  // once at least: what the ranks have written is there, however late this process runs
    wait_for_events();
    if (Clock::now() >= end) break;
  }
  for (RankProcess& each : processes_) each.finish_output();
}

/// Waits until readers have taken all output; after a job that failed, only while they go on reading.
void Job::flush_console() {
  const int signals = signals_taken_;
  std::size_t pending = console_.pending();
  const auto next_end = [this] { return exit_code() == 0 ? Clock::time_point::max() : Clock::now() + reader_time; };
  next_signal_at_ = next_end();
  while (pending > 0 && Clock::now() < next_signal_at_ && signals == signals_taken_) {
    wait_for_events();
    if (interrupt_ == SIGKILL) return;
    if (console_.pending() < pending) next_signal_at_ = next_end();
    pending = console_.pending();
  }
  if (pending == 0) return;
  console_.report(fmt::format("beeline-launch: {} bytes of output are dropped: nobody reads them", pending));
  next_signal_at_ = Clock::now() + last_output_time;  // for the line above, if a process reads standard error
  while (console_.pending() > pending && Clock::now() < next_signal_at_) wait_for_events();
}

/// If the error of the rank that ended first names another rank as its cause, that rank becomes the culprit.
void Job::find_cause() {
  if (culprit_ < 0 || options_.threads) return;
  const int cause = cause_in(processes_[static_cast<std::size_t>(culprit_)].history().lines());
  if (cause < 0 || cause >= options_.ranks) return;
  const auto& ending = processes_[static_cast<std::size_t>(cause)].ending();
  if (ending && !ending->success()) culprit_ = cause;
}

std::string Job::describe_end(const RankProcess& process, bool with_reason) const {
  const Ending& ending = *process.ending();
  std::string who = process.rank() < 0 ? "the program" : fmt::format("rank {}", process.rank());
  if (!options_.hosts.empty()) who += " on " + options_.hosts[host_index(options_, process.rank())];
  std::string text = fmt::format("{} (pid {}) {}", who, process.pid(), ending.text());
  if (!options_.hosts.empty() && !ending.killed && ending.value == ssh_failed)
    text += ": ssh did not reach the host, or has lost it";
  if (const std::string reason = reason_of(process); !reason.empty()) return with_reason ? text + "; " + reason : text;
  if (!ending.success()) return text;
  const bool is_missed = server_ && server_->is_missed(process.rank());
  return text + (is_missed ? " before it joined the world" : " without leaving the world");
}

/// The reason that a rank reported to the server, as `rank 3 aborted: ...`; empty if none.
std::string Job::reason_of(const RankProcess& process) const {
  const auto failure = server_ ? server_->failure() : std::nullopt;
  const bool is_meant = failure && (failure->culprit == process.rank() || !options_.keep_going);
  return is_meant && failure->status == Status::aborted ? failure->reason : "";
}

std::vector<std::string> Job::report() const {
  std::vector<std::string> lines;
  if (culprit_ >= 0 && exit_code() != 0) {
    const RankProcess& culprit = processes_[static_cast<std::size_t>(culprit_)];
    const auto& last = culprit.history().lines();
    lines.push_back(fmt::format("beeline-launch: {}", describe_end(culprit, !holds(last, reason_of(culprit)))));
    lines.emplace_back(last.empty() ? "  it had printed nothing" : "  its last lines:");
    for (const std::string& each : last) lines.push_back("    " + each);
  } else if (output_fault_ == EPIPE) {
    lines.emplace_back("beeline-launch: the job was ended because nobody reads its output");
  } else if (output_fault_ != 0) {
    lines.push_back(fmt::format("beeline-launch: the job was ended because its output cannot be written: {}",
                                std::strerror(output_fault_)));
  } else if (interrupt_ != 0) {
    lines.push_back(fmt::format("beeline-launch: the job was ended by {}", signal_name(interrupt_)));
  }
  const auto say = [&](const std::vector<int>& ranks, const std::string& what, const char* end) {
    if (ranks.empty() || options_.threads) return;
    const bool is_one = ranks.size() == 1;
    lines.push_back(fmt::format("  {} {} {} and {} {}", is_one ? "rank" : "ranks", fmt::join(ranks, ", "), what,
                                is_one ? "was" : "were", end));
  };
  say(stopped_, "had been stopped by a signal,", "killed");
  say(terminated_, fmt::format("did not end within {:.3g} s", end_limit_.count()), "terminated");
  return lines;
}

int Job::exit_code() const {
  const auto has_gone_on = [this](const RankProcess& each) {
    return each.ending() && each.ending()->success() && !is_given_up(each);  // given up: failed
  };
  const bool went_on =
      options_.keep_going && interrupt_ == 0 && std::any_of(processes_.begin(), processes_.end(), has_gone_on);
  if (went_on) return 0;
  if (culprit_ >= 0) {
    const int code = processes_[static_cast<std::size_t>(culprit_)].ending()->exit_code();
    return code != 0 ? code : 1;
  }
  if (output_fault_ != 0 && output_fault_ != EPIPE) return 1;
  return interrupt_ != 0 ? 128 + interrupt_ : 0;
}

}  // namespace

int run(const Options& options, int guardian) {
  Job job(options, guardian);
  return job.run();
}

}  // namespace beeline::launch
