// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <thread>

#include "beeline/core/wait_policy.hpp"
#include "beeline/hpe/files.hpp"
#include "beeline/runtime/file_descriptor.hpp"
#include "hpe/files/block_mover.hpp"
#include "tests/hpe/file_folder.hpp"
#include "tests/hpe/mapping.hpp"
#include "tests/hpe/may_fork.hpp"
#include "tests/hpe/memory_kinds.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::file_fault_tests {

namespace {

namespace fs = std::filesystem;
using namespace beeline::hpe;
using beeline::Status;

constexpr std::size_t mib = std::size_t{1} << 20;

/// A stream whose work waits for `release`.
class HeldStream {
 public:
  HeldStream() {
    stream.enqueue([this] {
      while (!released_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
  ~HeldStream() { released_ = true; }
  void release() { released_ = true; }
  Stream stream{Device::host()};

 private:
  std::atomic<bool> released_{false};
};

/// Waits for a child, which returns an empty answer.
void expect_good(ChildProcess child) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  child.tell("go");
  while (!child.read_more() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(child.ended());
  EXPECT_EQ(child.answer(), "");
  EXPECT_EQ(child.exit_code(), 0);
  EXPECT_EQ(child.signal(), 0);
}

TEST(FileFaults, MemoryOfNobody) {
  const FileFolder folder;
  make_file(folder / "file", test_bytes(3 * mib, 1));
  auto* const gone = reinterpret_cast<std::byte*>(std::uintptr_t{4096});  // Linux maps nothing so low
  check_error(Status::invalid_argument, {}, [&] { read_file(folder / "file", gone, mib); });
  check_error(Status::invalid_argument, {}, [&] { read_file(folder / "file", nullptr, 1); });
  check_error(Status::invalid_argument, {}, [&] { write_file(folder / "new", gone, mib); });
  EXPECT_FALSE(fs::exists(folder / "new"));
  if (!under_thread_sanitizer) {  // which maps memory of its own where some was unmapped
    const Mapping mapping(2 * mib);
    ::munmap(mapping.start() + mib, mib);
    check_error(Status::invalid_argument, {"not all of them"},
                [&] { read_file(folder / "file", mapping.start(), mib + 1); });
    EXPECT_EQ(mapping.start()[0], std::byte{});
  }
  const DeviceMemory device(Device::all().front(), 1000);
  check_error(Status::invalid_argument, {"ends after 400"},
              [&] { read_file(folder / "file", device.data() + 600, 401); });
}

TEST(FileFaults, ProtectedMemory) {
  const FileFolder folder;
  make_file(folder / "file", test_bytes(3 * mib, 2));
  const Mapping mapping(2 * mib);
  mapping.protect(PROT_READ);
  for (const std::size_t shift : {0, 3})
    for (const FileAccess access : {FileAccess::direct, FileAccess::buffered})
      check_error(Status::invalid_argument, {},
                  [&] { read_file(folder / "file", mapping.start() + shift, mib, {.access = access}); });
  mapping.protect(PROT_NONE);
  check_error(Status::invalid_argument, {}, [&] { write_file(folder / "new", mapping.start(), mib); });
  EXPECT_FALSE(fs::exists(folder / "new"));
}

TEST(FileFaults, WhatIsNoRegularFile) {
  const FileFolder folder;
  std::byte here[8] = {};
  fs::create_directory(folder / "folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const char* name : {"folder", "pipe"}) {
    const char* const word = std::strcmp(name, "pipe") == 0 ? "a pipe" : "";
    check_error(Status::invalid_argument, {name, word}, [&] { read_file(folder / name, here, 1); });
    check_error(Status::invalid_argument, {name, word}, [&] { write_file(folder / name, here, 1); });
  }
  check_error(Status::invalid_argument, {"a device"}, [&] { read_file("/dev/zero", here, 1); });
  check_error(Status::invalid_argument, {"No such file"}, [&] { read_file(folder / "none", here, 1); });
  check_error(Status::invalid_argument, {"No such file"}, [&] { write_file(folder / "none/file", here, 1); });
  fs::create_symlink("none", folder / "link");
  check_error(Status::invalid_argument, {"No such file"}, [&] { read_file(folder / "link", here, 1); });
  check_error(Status::invalid_argument, {"No such file"}, [&] { write_file(folder / "link", here, 1); });
  EXPECT_FALSE(fs::exists(folder / "none"));
}

TEST(FileFaults, WrongSizesTouchNothing) {
  const FileFolder folder;
  make_file(folder / "file", test_bytes(1000, 3));
  std::vector<std::byte> here(2000);
  check_error(Status::invalid_argument, {"1000 bytes", "1001"}, [&] { read_file(folder / "file", here.data(), 1001); });
  check_error(Status::invalid_argument, {"offset 1001"},
              [&] { read_file(folder / "file", here.data(), 0, {.offset = 1001}); });
  check_error(Status::invalid_argument, {"files end before"},
              [&] { read_file(folder / "file", here.data(), 8, {.offset = ~std::uint64_t{0} - 4}); });
  check_error(Status::invalid_argument, {"blocks"},
              [&] { read_file(folder / "file", here.data(), 8, {.block_bytes = std::size_t{1} << 40}); });
  check_error(Status::invalid_argument, {"in flight"},
              [&] { read_file(folder / "file", here.data(), 8, {.blocks_in_flight = 100}); });
  for (const std::chrono::nanoseconds none : {std::chrono::nanoseconds(0), std::chrono::nanoseconds(-1)})
    check_error(Status::invalid_argument, {"deadline of", "more than 0"},
                [&] { read_file(folder / "file", here.data(), 8, {.deadline = none}); });
  EXPECT_EQ(here, std::vector<std::byte>(2000));
}

TEST(FileFaults, NoPermission) {
  if (!may_fork()) GTEST_SKIP() << no_fork;
  const FileFolder folder;
  make_file(folder / "file", test_bytes(1000, 4));
  ASSERT_EQ(::chmod((folder / "file").c_str(), 0), 0);
  ASSERT_EQ(::chmod((folder / ".").c_str(), 0755), 0);
  expect_good(ChildProcess([&](const std::string&) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return std::string("root cannot become another user");
    std::byte here[8] = {};
    check_error(Status::invalid_argument, {"Permission denied"}, [&] { read_file(folder / "file", here, 8); });
    check_error(Status::invalid_argument, {"Permission denied"}, [&] { write_file(folder / "file", here, 8); });
    return std::string();
  }));
}

/// The umask forbids even the file's maker to open it again, as a transfer with blocks past the page cache and through
/// it does.
TEST(FileFaults, NewFileThatCannotBeOpenedAgain) {
  if (!may_fork()) GTEST_SKIP() << no_fork;
  const FileFolder folder;
  const std::vector<std::byte> data = test_bytes(3 * mib + 77, 5);
  ASSERT_EQ(::chmod((folder / ".").c_str(), 0777), 0);
  expect_good(ChildProcess([&](const std::string&) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return std::string("root cannot become another user");
    ::umask(0777);
    write_file(folder / "new", data.data(), data.size(), {.offset = 3, .durable = true});
    return std::string();
  }));
  ASSERT_EQ(::chmod((folder / "new").c_str(), 0600), 0);
  std::vector<std::byte> expected(3);
  expected.insert(expected.end(), data.begin(), data.end());
  EXPECT_EQ(content_of(folder / "new"), expected);
}

TEST(FileFaults, FileThatShrinks) {
  const FileFolder folder;
  make_file(folder / "file", test_bytes(4 * mib, 5));
  std::vector<std::byte> here(4 * mib);
  for (const FileAccess access : {FileAccess::direct, FileAccess::buffered}) {
    HeldStream held;
    read_file(folder / "file", here.data(), 4 * mib, held.stream, {.access = access});
    fs::resize_file(folder / "file", mib + 17);
    held.release();
    check_error(Status::invalid_argument, {"has shrunk"}, [&] { held.stream.synchronize(); });
    fs::resize_file(folder / "file", 4 * mib);
  }
}

/// Files of /sys have the length of a page, whatever they hold.
TEST(FileFaults, FileThatIsShorterThanItsLength) {
  const fs::path file = "/sys/devices/system/cpu/online";
  if (!fs::exists(file)) GTEST_SKIP() << "no /sys";
  std::vector<std::byte> here(fs::file_size(file));
  check_error(Status::invalid_argument, {"by its length, but ends before"},
              [&] { read_file(file, here.data(), here.size()); });
}

/// The memory is protected, not unmapped: a buffer of the transfer itself could come to lie at its address.
TEST(FileFaults, MemoryThatIsGoneWhenAStreamReads) {
  const FileFolder folder;
  make_file(folder / "file", test_bytes(4 * mib, 6));
  for (const std::size_t shift : {0, 5}) {
    HeldStream held;
    const Mapping mapping(5 * mib);
    read_file(folder / "file", mapping.start() + shift, 4 * mib, held.stream);
    mapping.protect(PROT_NONE);
    held.release();
    check_error(Status::invalid_argument, {"not mapped"}, [&] { held.stream.synchronize(); });
  }
}

TEST(FileFaults, LimitOfLength) {
  const FileFolder folder;
  const std::vector<std::byte> data = test_bytes(10000, 7);
  make_file(folder / "file", data);
  struct ::rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct ::rlimit less = before;
  less.rlim_cur = 12000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &less), 0);
  check_error(Status::no_resource, {"RLIMIT_FSIZE"},
              [&] { write_file(folder / "file", data.data(), 10000, {.offset = 2001}); });
  EXPECT_EQ(write_file(folder / "file", data.data(), 10000, {.offset = 2000}), 10000u);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(fs::file_size(folder / "file"), 12000u);
}

/// A file system that is mounted for a test.
class Mount {
 public:
  Mount(const fs::path& folder, const char* type, const char* options) : folder_(folder) {
    fs::create_directory(folder);
    is_there_ = ::mount("none", folder.c_str(), type, 0, options) == 0;
  }
  ~Mount() {
    if (is_there_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;
  [[nodiscard]] bool is_there() const { return is_there_; }

 private:
  const fs::path folder_;
  bool is_there_ = false;
};

TEST(FileFaults, FullFileSystem) {
  const FileFolder folder;
  const Mount mount(folder / "small", "tmpfs", "size=1m");
  if (!mount.is_there()) GTEST_SKIP() << "cannot mount a tmpfs: " << std::strerror(errno);
  const std::vector<std::byte> data = test_bytes(3 * mib, 8);
  const fs::path file = folder / "small/file";
  check_error(Status::no_resource, {"no room", "No space left"}, [&] { write_file(file, data.data(), data.size()); });
  EXPECT_FALSE(fs::exists(file));
  write_file(file, data.data(), mib / 2);
  check_error(Status::no_resource, {"no room"}, [&] { write_file(file, data.data(), mib, {.offset = mib / 4}); });
  EXPECT_EQ(content_of(file), std::vector<std::byte>(data.begin(), data.begin() + mib / 2));
}

/// Reads and writes where the file system refuses O_DIRECT, or takes it without a use for it.
TEST(FileFaults, FileSystemsInMemory) {
  const FileFolder folder;
  const std::vector<std::byte> data = test_bytes(3 * mib + 1, 9);
  for (const char* type : {"ramfs", "tmpfs"}) {
    const Mount mount(folder / type, type, "");
    if (!mount.is_there()) GTEST_SKIP() << "cannot mount a " << type << ": " << std::strerror(errno);
    const fs::path file = folder / type / "file";
    if (std::strcmp(type, "ramfs") == 0) {
      make_file(file, data);
      EXPECT_LT(::open(file.c_str(), O_RDONLY | O_DIRECT), 0) << "this ramfs does not refuse O_DIRECT";
    }
    std::vector<std::byte> there(data.size());
    write_file(file, data.data(), data.size(), {.access = FileAccess::direct});
    read_file(file, there.data(), data.size(), {.access = FileAccess::direct});
    EXPECT_EQ(there, data) << type;
  }
}

/// From now on the calling thread may not make io_urings.
bool forbid_uring() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(FileFaults, UringForbidden) {
  if (!may_fork()) GTEST_SKIP() << no_fork;
  const FileFolder folder;
  const std::vector<std::byte> data = test_bytes(3 * mib + 1, 10);
  expect_good(ChildProcess([&](const std::string&) {
    if (!forbid_uring()) return std::string("seccomp is not there");
    const beeline::FileDescriptor lines(::open((folder / "log").c_str(), O_CREAT | O_WRONLY, 0600));
    ::dup2(lines.get(), STDERR_FILENO);
    std::vector<std::byte> there(data.size());
    for (int round = 0; round < 2; ++round) {
      write_file(folder / "file", data.data(), data.size(), {.durable = true});
      read_file(folder / "file", there.data(), data.size());
      // In a new thread, too.
      std::thread([&] { read_file(folder / "file", there.data() + 1, 1000); }).join();
    }
    if (file_support().no_uring.empty()) return std::string("io_uring is there");
    const std::vector<std::byte> log = content_of(folder / "log");
    const std::string text(reinterpret_cast<const char*>(log.data()), log.size());
    if (count_of(text, "threads read and write files") != 1) return "log: " + text;
    read_file(folder / "file", there.data(), data.size());
    return std::string(there == data ? "" : "wrong data");
  }));
}

TEST(FileFaults, ForkedProcessHasItsOwnCalls) {
  if (!may_fork()) GTEST_SKIP() << no_fork;
  const FileFolder folder;
  const std::vector<std::byte> data = test_bytes(2 * mib, 11);
  write_file(folder / "file", data.data(), data.size());
  expect_good(ChildProcess([&](const std::string&) {
    std::vector<std::byte> there(data.size());
    read_file(folder / "file", there.data(), data.size());
    return std::string(there == data ? "" : "wrong data");
  }));
}

/// At a limit on threads: the second call has none of its own.
TEST(FileFaults, FewerThreadsThanCalls) {
  if (!may_fork()) GTEST_SKIP() << no_fork;
  expect_good(ChildProcess([](const std::string&) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return std::string("root cannot become another user");
    std::atomic<bool> may_end{false};
    const auto io = detail::make_thread_io(2, [&](const detail::BlockCall& call) -> std::int64_t {
      while (!may_end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return call.tag;
    });
    io->start({.tag = 0});
    try {
      const ::rlimit no_more{.rlim_cur = 1, .rlim_max = 1};
      beeline::require(::setrlimit(RLIMIT_NPROC, &no_more) == 0, beeline::Status::internal, "no limit");
      io->start({.tag = 1});
    } catch (const beeline::Error& error) {
      may_end = true;
      return std::string(error.what());
    }
    may_end = true;
    detail::BlockResult result;
    for (const std::int64_t tag : {0, 1})
      if (!io->await(result, 10'000'000'000, 1) || result.value != tag) return std::string("no result");
    return std::string();
  }));
}

TEST(FileFaults, Deadline) {
  if (under_thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer makes calls so slow that blocks never wait";
  const FileFolder folder;
  make_file(folder / "file", test_bytes(16 * mib, 12));
  std::vector<std::byte> here(16 * mib);
  check_error(Status::deadline, {"no progress", "of 16777216 bytes"}, [&] {
    for (int attempt = 0; attempt < 100; ++attempt)  // on a busy machine blocks may arrive before the thread waits
      read_file(folder / "file", here.data(), here.size(),
                {.access = FileAccess::buffered, .deadline = std::chrono::nanoseconds(1)});
  });
  read_file(folder / "file", here.data(), here.size());
}

TEST(FileFaults, CallsThatTheKernelPutsOffForEverEndAtTheDeadline) {
  const FileFolder folder;
  make_file(folder / "file", test_bytes(8192, 3));
  std::vector<std::byte> there(8192);
  detail::OpenFile file(folder / "file", detail::FileDirection::reads, {0, there.size()}, FileAccess::buffered);
  const auto io = detail::make_thread_io(2, [](const detail::BlockCall&) -> std::int64_t { return -EAGAIN; });
  const auto copies = detail::make_host_copies();
  const detail::MoverParts parts{.file = file,
                                 .io = *io,
                                 .copies = *copies,
                                 .memory = there.data(),
                                 .buffers = nullptr,
                                 .buffer_bytes = 0,
                                 .slots = 2,
                                 .calls = 2,
                                 .cached_calls = 2,
                                 .in_place = true};
  const FileOptions options{.deadline = std::chrono::milliseconds(100)};
  detail::BlockMover mover(parts, {{0, there.size()}, 4096, 0}, options);
  check_error(Status::deadline, {"no progress of blocks", "after 0 of 8192 bytes"}, [&] { mover.run(); });
  EXPECT_FALSE(mover.is_stuck());
}

class AlwaysInterrupts final : public beeline::detail::WaitInterrupt {
 public:
  AlwaysInterrupts() : before_(beeline::detail::interrupt_waits_by(this)) {}
  ~AlwaysInterrupts() { beeline::detail::interrupt_waits_by(before_); }
  bool ends_wait(std::uint64_t) noexcept override { return true; }

 private:
  beeline::detail::WaitInterrupt* const before_;
};

TEST(FileFaults, SignalOfTheProgramEndsATransfer) {
  const FileFolder folder;
  make_file(folder / "file", test_bytes(16 * mib, 13));
  std::vector<std::byte> here(16 * mib);
  {
    const AlwaysInterrupts interrupts;
    check_error(Status::aborted, {"a signal"}, [&] { read_file(folder / "file", here.data(), here.size()); });
    check_error(Status::aborted, {"a signal"}, [&] { write_file(folder / "new", here.data(), here.size()); });
  }
  EXPECT_FALSE(fs::exists(folder / "new"));
  EXPECT_EQ(read_file(folder / "file", here.data(), here.size()), here.size());
}

TEST(FileFaults, ExceptionOfProgressEndsATransfer) {
  const FileFolder folder;
  const std::vector<std::byte> data = test_bytes(1000, 14);
  const FileOptions options{.progress = [](std::size_t, std::size_t) { throw std::runtime_error("enough"); }};
  EXPECT_THROW(write_file(folder / "new", data.data(), data.size(), options), std::runtime_error);
  EXPECT_FALSE(fs::exists(folder / "new"));
}

}  // namespace

}  // namespace beeline_test::file_fault_tests
