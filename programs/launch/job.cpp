// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <fmt/format.h>
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
#include <optional>
#include <utility>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "guardian.hpp"
#include "job_report.hpp"
#include "process_table.hpp"
#include "rank_environment.hpp"
#include "rank_process.hpp"
#include "remote.hpp"
#include "standard_input.hpp"
#include "torch_variables.hpp"

namespace beeline::launcher {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto end_time = 3s;          // for the other ranks to end by themselves, once one rank has failed
constexpr auto termination_time = 2s;  // from SIGTERM to SIGKILL
constexpr auto last_output_time = 500ms;
constexpr auto reader_time = 1s;       // after a job that failed: for a reader to take more of its output
constexpr auto greeting_time = 9s;     // for a host to start a rank; ssh itself gives up a connection before
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
  [[nodiscard]] bool all_ended() const;
  [[nodiscard]] JobReport report() const { return {options_, processes_, server_ ? &*server_ : nullptr}; }

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
  bool ending_ = false;  ///< a rank failed: all must end
  JobEnd end_;
  int signals_taken_ = 0;  ///< signals that end the job, also the repeated ones of a user who insists
  Clock::time_point interrupted_at_;
  Clock::time_point grace_ends_at_ = Clock::time_point::max();  ///< until then ranks may go on after SIGTERM
  bool suspended_ = false;                                      ///< by SIGTSTP
  bool needs_room_ = true;                                      ///< ranks wait for a reader of their output
  int next_signal_ = SIGTERM;                                   ///< for ranks that have not ended by next_signal_at_
  Clock::time_point next_signal_at_ = Clock::time_point::max();
  Clock::time_point end_began_at_;
  Clock::time_point beginning_due_at_ = Clock::time_point::max();  ///< when the next unfinished line is printed
  bool children_changed_ = false;                                  ///< a child has ended, stopped or continued
  Clock::time_point standstill_ends_at_ = Clock::time_point::max();
  Clock::time_point silence_ends_at_ = Clock::time_point::max();  ///< when hosts that have not answered are reported
  std::vector<int> outcasts_;  ///< ranks of end_.given_up that were killed because they hung
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
  Environment changes = rank_environment(options_, {server_ ? server_->address() : "", token_}, rank);
  if (torch_) torch_->add_to(changes, rank);
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
  const JobReport report = this->report();
  report.find_cause(end_);
  for (const std::string& line : report.lines(end_)) console_.report(line);
  flush_console();
  return report.exit_code(end_);
}

bool Job::all_ended() const {
  return std::all_of(processes_.begin(), processes_.end(), [](const RankProcess& each) { return each.ending(); });
}

void Job::wait_for_events() {
  std::vector<pollfd> set = {{signals_.get(), POLLIN, 0},
                             {server_ && !ending_ && !in_grace() ? server_->failure_descriptor() : -1, POLLIN, 0},
                             {end_.interrupt == SIGKILL ? -1 : guardian_, POLLIN, 0},
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
  end_.interrupt = next_signal_ = SIGKILL;
  next_signal_at_ = Clock::now();
}

void Job::take_signal(int signal) {
  if (signal == SIGTSTP || signal == SIGCONT) return suspend(signal == SIGTSTP);
  if (signal != SIGTERM && signal != SIGINT && signal != SIGQUIT) {  // the program gives the signal its meaning
    for (const RankProcess& each : processes_)
      if (!each.ending()) each.signal_process(signal);
    return;
  }
  if (end_.interrupt != 0 && Clock::now() < interrupted_at_ + insists_after) return;
  ++signals_taken_;
  if (end_.interrupt != 0) {  // the user insists
    end_by_signal();
    next_signal_at_ = Clock::now();
    return;
  }
  end_.interrupt = signal;
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
  if (server_) server_->abort(-1, fmt::format("the launcher got {}", signal_name(end_.interrupt)));
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
    if (server_) server_->abort(process.rank(), report().text_of(process));
  }
}

void Job::go_on_without(std::size_t index) {
  const RankProcess& process = processes_[index];
  if (end_.culprit < 0) end_.culprit = static_cast<int>(index);
  end_.given_up.push_back(process.rank());
  const std::string end = report().text_of(process);
  server_->abort(process.rank(), end);
  console_.report(fmt::format("beeline-launch: {}; the others may go on (--keep-going)", end));
}

/// Kills ranks that the other ranks have given up and that may hang. This is immediate, so that such a rank does not
/// write into the memory of ranks that go on.
void Job::end_outcasts() {
  for (const WorldFailure& failure : server_->take_failures()) {
    if (failure.culprit < 0) continue;
    if (end_.culprit < 0) end_.culprit = failure.culprit;
    end_.given_up.push_back(failure.culprit);
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
                  [&](const RankProcess& each) { return !is_left(each) || end_.has_given_up(each.rank()); }))
    begin_end(end_.culprit >= 0 ? end_.culprit : end_.given_up.front());
}

void Job::check_server() {
  if (!server_ || ending_ || in_grace()) return;
  if (options_.keep_going) return end_outcasts();
  if (const auto failure = server_->failure()) begin_end(failure->culprit);
}

void Job::begin_end(int culprit) {
  ending_ = true;
  end_.culprit = culprit;
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
    if (!contains(end_.stopped, each.rank())) end_.stopped.push_back(each.rank());
    each.signal_group(SIGKILL);
  }
}

/// Ends the job because its output can no longer be written; `fault` is the errno, 0 if output can be written.
void Job::lose_output(int fault) {
  if (fault == 0 || end_.output_fault != 0) return;
  end_.output_fault = fault;
  if (end_.interrupt == 0) signal_running(SIGTERM);
  if (end_.interrupt == 0 || in_grace()) {
    end_.interrupt = SIGTERM;
    end_by_signal();
  }
  end_.interrupt = SIGPIPE;
}

void Job::enforce_end() {
  if (Clock::now() >= grace_ends_at_) end_by_signal();
  if (Clock::now() < next_signal_at_) return;
  if (end_.terminated.empty()) {
    end_.limit = std::min<std::chrono::duration<double>>(Clock::now() - end_began_at_, end_time);
    for (const RankProcess& each : processes_)
      if (!each.ending()) end_.terminated.push_back(each.rank());
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
  const auto next_end = [this] {
    return report().exit_code(end_) == 0 ? Clock::time_point::max() : Clock::now() + reader_time;
  };
  next_signal_at_ = next_end();
  while (pending > 0 && Clock::now() < next_signal_at_ && signals == signals_taken_) {
    wait_for_events();
    if (end_.interrupt == SIGKILL) return;
    if (console_.pending() < pending) next_signal_at_ = next_end();
    pending = console_.pending();
  }
  if (pending == 0) return;
  console_.report(fmt::format("beeline-launch: {} bytes of output are dropped: nobody reads them", pending));
  next_signal_at_ = Clock::now() + last_output_time;  // for the line above, if a process reads standard error
  while (console_.pending() > pending && Clock::now() < next_signal_at_) wait_for_events();
}

}  // namespace

int run(const Options& options, int guardian) {
  Job job(options, guardian);
  return job.run();
}

}  // namespace beeline::launcher
