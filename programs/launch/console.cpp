// SPDX-License-Identifier: Apache-2.0
#include "console.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "beeline/core/error.hpp"
#include "beeline/runtime/file_descriptor.hpp"

namespace beeline::launcher {

namespace {

constexpr std::size_t most_pending = std::size_t{1} << 20;  // bytes that wait to be written to a file
constexpr std::size_t chunk_bytes = std::size_t{64} << 10;

/// Writes all of `text`, and blocks meanwhile. Returns 0, or the errno of the failure.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // a process that shares the terminal or pipe made it non-blocking
      pollfd set{descriptor, POLLOUT, 0};
      ::poll(&set, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

bool is_one_file(int one, int other) {
  struct stat first {
  }, second{};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

/// A thread that writes to one file. A write may block for ever; then the thread ends with the process. Therefore the
/// thread owns its state.
class Console::Writer {
 public:
  explicit Writer(int changed) : changed_(::fcntl(changed, F_DUPFD_CLOEXEC, 0)) {}

  static std::shared_ptr<Writer> start(int changed) {
    auto writer = std::make_shared<Writer>(changed);
    try {
      std::thread([writer] { writer->run(); }).detach();
    } catch (const std::system_error& error) {
      throw Error(Status::no_resource, "no thread for the launcher's output: " + error.code().message() +
                                           "; raise the limit on processes (ulimit -u)");
    }
    return writer;
  }

  void append(int descriptor, std::string_view text) {
    const std::scoped_lock lock(mutex_);
    if (fault_ != 0 || text.empty()) return;
    pending_ += text.size();
    // The writer may be writing the first chunk.
    if (chunks_.size() > 1 && chunks_.back().descriptor == descriptor && chunks_.back().text.size() < chunk_bytes)
      chunks_.back().text += text;
    else
      chunks_.push_back({descriptor, std::string(text)});
    added_.notify_one();
  }

  void close() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    added_.notify_one();
  }

  [[nodiscard]] std::size_t pending() const {
    const std::scoped_lock lock(mutex_);
    return pending_;
  }
  [[nodiscard]] int fault() const {
    const std::scoped_lock lock(mutex_);
    return fault_;
  }

 private:
  struct Chunk {
    int descriptor;
    std::string text;
  };

  void run() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);  // SIGTTOU, too: to write from the background
    std::unique_lock lock(mutex_);
    while (true) {
      added_.wait(lock, [this] { return closed_ || !chunks_.empty(); });
      if (closed_) return;
      const Chunk& chunk = chunks_.front();  // its address stays valid: other chunks are appended behind it
      lock.unlock();
      const int fault = write_all(chunk.descriptor, chunk.text);
      lock.lock();
      pending_ -= chunk.text.size();
      chunks_.pop_front();
      if (fault != 0) {
        fault_ = fault;
        pending_ = 0;
        chunks_.clear();
      }
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t raised = ::write(changed_.get(), &one, sizeof one);  // fails only when raised
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable added_;
  std::deque<Chunk> chunks_;
  std::size_t pending_ = 0;
  int fault_ = 0;
  bool closed_ = false;
  FileDescriptor changed_;
};

Console::Console()
    : is_one_file_(is_one_file(STDOUT_FILENO, STDERR_FILENO)), changed_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  require(changed_ >= 0, Status::no_resource, "no eventfd for the launcher's output");
  files_[0].writer = Writer::start(changed_);
  if (!is_one_file_) files_[1].writer = Writer::start(changed_);
}

Console::~Console() {
  for (const File& each : files_)
    if (each.writer) each.writer->close();
  ::close(changed_);
}

void Console::print(int descriptor, Source source, std::string_view prefix, std::string_view text, bool ends_line) {
  File& to = files_[index(descriptor)];
  std::string all;
  if (to.open != launcher_source && to.open != source) all += '\n';
  if (to.open == launcher_source || to.open != source) all += prefix;
  all += text;
  if (ends_line) all += '\n';
  to.open = ends_line ? launcher_source : source;
  to.writer->append(descriptor, all);
}

bool Console::is_open(int descriptor, Source source) const { return files_[index(descriptor)].open == source; }

bool Console::has_room(int descriptor) const { return files_[index(descriptor)].writer->pending() < most_pending; }

std::size_t Console::pending() const {
  std::size_t bytes = 0;
  for (const File& each : files_)
    if (each.writer) bytes += each.writer->pending();
  return bytes;
}

int Console::fault() const {
  for (const File& each : files_)
    if (each.writer && each.writer->fault() != 0) return each.writer->fault();
  return 0;
}

int Console::descriptor() const { return changed_; }

void Console::lower() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(changed_, &count, sizeof count);  // fails only when not raised
}

}  // namespace beeline::launcher
