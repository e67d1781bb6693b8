// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/hpe/object.hpp"
#include "hpe/objects/block_object.hpp"
#include "hpe/objects/fault_service.hpp"
#include "tests/hpe/mapping.hpp"
#include "tests/hpe/object_cases.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/errors.hpp"

#if defined(__SANITIZE_THREAD__)
/// A fault that cannot be resolved formats its error inside the handler. The thread was at an access to an object, so
/// it is inside no allocation.
extern "C" const char* __tsan_default_options() { return "report_signal_unsafe=0"; }
#endif

namespace beeline_test::object_faults {

namespace {

using namespace beeline::hpe;
using beeline::Status;
using namespace std::chrono_literals;

sigjmp_buf outside;
std::atomic<int> passed_on{0};
const void* volatile fault_address = nullptr;

void leave(int, siginfo_t* info, void*) {
  ++passed_on;
  fault_address = info->si_addr;
  siglongjmp(outside, 1);
}

/// A handler of the program, for a scope.
class OwnHandler {
 public:
  OwnHandler() {
    struct sigaction own {};
    own.sa_sigaction = &leave;
    own.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &own, &before_);
    passed_on = 0;
  }
  ~OwnHandler() { ::sigaction(SIGSEGV, &before_, nullptr); }
  OwnHandler(const OwnHandler&) = delete;
  OwnHandler& operator=(const OwnHandler&) = delete;

 private:
  struct sigaction before_ {};
};

/// Whether a store to `address` ends in the program's handler.
bool faults(void* address) {
  if (sigsetjmp(outside, 1) != 0) return true;
  *static_cast<volatile char*>(address) = 1;
  return false;
}

TEST(ObjectFaults, OfTheProgramReachItsHandler) {
  const OwnHandler handler;  // before the object
  Object<char> object(4 * block, small_blocks());
  const Mapping pages(block, PROT_NONE);
  EXPECT_FALSE(faults(object.data()));
  EXPECT_TRUE(faults(pages.start() + 5));
  EXPECT_EQ(fault_address, pages.start() + 5);
  EXPECT_FALSE(faults(object.data() + block));
  EXPECT_TRUE(faults(pages.start()));
  EXPECT_EQ(passed_on, 2);
}

TEST(ObjectFaults, AHandlerThatCameLaterIsPassedOnTo) {
  Object<char> object(4 * block, small_blocks());
  const OwnHandler handler;
  Stream stream(Device::host());
  run_on(stream, object, [](char* all, std::size_t count) { std::memset(all, 7, count); });  // puts ours in front
  const Mapping pages(block, PROT_NONE);
  EXPECT_EQ(object[block], 7);
  EXPECT_TRUE(faults(pages.start()));
  EXPECT_EQ(passed_on, 1);
}

TEST(ObjectFaults, DeviceOnlyIsNotForTheHost) {
  const OwnHandler handler;
  ObjectOptions options = small_blocks();
  options.hint = Hint::device_only;
  Object<char> object(4 * block, options);
  EXPECT_TRUE(faults(object.data()));
  Stream stream(Device::host());
  run_on(stream, object, [](char* all, std::size_t) { all[1] = 'k'; });
  const HostAccess access(object, 0, 2, Access::read);
  EXPECT_EQ(object[1], 'k');
}

TEST(ObjectFaults, AKernelThatDoesNotEndIsAFaultAtTheDeadline) {
  const OwnHandler handler;
  Object<char> object(4 * block, small_blocks(Protocol::protection, 50ms));
  Stream stream(Device::host());
  std::atomic<bool> may_end{false};
  run_on(stream, object, [&](char*, std::size_t) {
    while (!may_end) std::this_thread::sleep_for(1ms);
  });
  EXPECT_TRUE(faults(object.data()));
  check_error(Status::deadline, {"kernels that use it", "0.05 s"}, [&] { HostAccess(object, Access::read); });
  may_end = true;
  stream.synchronize();
  EXPECT_FALSE(faults(object.data()));
}

TEST(ObjectFaults, WithinTheThreadsOwnDeviceAccessFailAtOnce) {
  const OwnHandler handler;
  Object<char> object(4 * block, small_blocks());
  Stream stream(Device::host());
  const auto began = std::chrono::steady_clock::now();
  {
    const DeviceAccess access(stream, {&object.state()});
    EXPECT_TRUE(faults(object.data()));
    detail::BlockObject& asked = static_cast<detail::BlockObject&>(object.state());
    EXPECT_EQ(detail::FaultService::get().resolve(asked, {0, true, ::gettid()}), detail::FaultResult::failed);
    EXPECT_EQ(detail::FaultService::get().resolve(asked, {0, true, ::gettid() + 1}), detail::FaultResult::waiting);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s) << "not at the deadline";
  EXPECT_FALSE(faults(object.data()));
}

TEST(ObjectFaults, InsideTheHandlersOwnPathReachTheProgramsHandler) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not survive a jump out of a fault inside its own memcpy";
#endif
  const OwnHandler handler;
  Object<char> object(4 * block, small_blocks());
  Stream stream(Device::host());
  run_on(stream, object, [](char* all, std::size_t) { all[0] = 1; });
  stream.synchronize();
  char* const copy = object.on(Device::host());
  ASSERT_EQ(::mprotect(copy, block, PROT_NONE), 0);  // the copy to the host faults
  EXPECT_TRUE(faults(object.data()));
  EXPECT_EQ(fault_address, copy);
  EXPECT_TRUE(faults(object.data())) << "the object stays unusable";
  check_error(Status::unavailable, {"unusable"}, [&] { HostAccess(object, Access::read); });
}

TEST(ObjectFaults, ALostDeviceIsAFault) {
  const OwnHandler handler;
  Object<char> object(4 * block, small_blocks());
  Stream stream(Device::host(59));
  run_on(stream, object, [](char* all, std::size_t) { all[0] = 1; });
  stream.synchronize();
  simulate_loss(Device::host(59));
  EXPECT_TRUE(faults(object.data()));
  check_error(Status::unavailable, {"host device 59"}, [&] { HostAccess(object, Access::read); });
}

TEST(ObjectFaults, EndTheProcessAsBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::signal(SIGSEGV, SIG_DFL);
        Object<char> object(4 * block, small_blocks());
        object[5] = 1;
        const Mapping pages(block, PROT_NONE);
        *static_cast<volatile std::byte*>(pages.start()) = std::byte{1};
      },
      testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(
      {
        ::signal(SIGSEGV, SIG_DFL);
        Object<char> object(4 * block, small_blocks());
        object[5] = 1;
        ::raise(SIGSEGV);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST(ObjectFaults, OfThreadsThatEndAreServed) {
  Object<std::uint64_t> object(64 * words_of_block, small_blocks());
  Stream stream(Device::host());
  for (std::uint64_t round = 1; round <= 10; ++round) {
    run_on(stream, object, add_to_all(1));
    for (std::size_t each = 0; each < 4; ++each)
      std::thread([&] { EXPECT_EQ(object[each * words_of_block * 9], round); }).join();
  }
}

TEST(ObjectFaults, AForkedProcessKeepsWhatTheHostHad) {
  for (const Protocol protocol : {Protocol::protection, Protocol::tracking}) {
    Object<std::uint64_t> object(4 * words_of_block, small_blocks(protocol));
    Stream stream(Device::host());
    run_on(stream, object, add_to_all(5));
    EXPECT_EQ(object[0], 5u);
    object[1] = 6;
    ChildProcess child([&](const std::string&) {
      BEELINE_CHECK_EQ(5u, object[0]);
      object[1] += 1;  // in the child alone
      BEELINE_CHECK_EQ(7u, object[1]);
      check_error(Status::unavailable, {"fork"}, [&] { HostAccess(object, Access::read); });
      const OwnHandler handler;
      BEELINE_CHECK(faults(object.data() + 3 * words_of_block));
      return std::string("done");
    });
    child.tell("");
    while (!child.read_more()) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(child.answer(), "done");
    EXPECT_EQ(object[1], 6u);
    EXPECT_EQ(object[3 * words_of_block], 5u);
  }
}

/// A system call waits for the kernel, fails at the deadline, and succeeds after the next launch.
TEST(TrackedObjects, SystemCallsEndAtTheDeadline) {
  Object<char> object(4 * block, small_blocks(Protocol::tracking, 50ms));
  if (object.memory().statistics().protocol != Protocol::tracking) GTEST_SKIP() << "userfaultfd is not permitted here";
  Stream stream(Device::host());
  std::atomic<bool> may_end{false};
  run_on(stream, object, [&](char*, std::size_t) {
    while (!may_end) std::this_thread::sleep_for(1ms);
  });
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(::write(ends[1], object.data(), 1), -1);
  EXPECT_EQ(errno, EFAULT);
  may_end = true;
  run_on(stream, object, [](char* all, std::size_t) { all[0] = 'r'; });
  EXPECT_EQ(::write(ends[1], object.data(), 1), 1);
  EXPECT_EQ(object[0], 'r');
  for (const int end : ends) ::close(end);
}

/// The last block may have pages behind the object's end.
TEST(TrackedObjects, AccessesBeyondTheEndAreRefused) {
  ObjectOptions options = small_blocks(Protocol::tracking);
  options.block_bytes = 2 * block;
  const Object<char> object(1, options);
  if (object.memory().statistics().protocol != Protocol::tracking) GTEST_SKIP() << "userfaultfd is not permitted here";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(::write(ends[1], object.data() + block, 1), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(object[0], 0);
  for (const int end : ends) ::close(end);
}

/// Takes all rights of the superuser from this process.
void drop_rights() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  BEELINE_CHECK_EQ(0, ::syscall(SYS_capset, &header, none));
}

TEST(TrackedObjects, FallBackWithoutRights) {
  if (std::string text; ::access("/proc/sys/vm/unprivileged_userfaultfd", R_OK) == 0) {
    const int file = ::open("/proc/sys/vm/unprivileged_userfaultfd", O_RDONLY);
    char value = '0';
    const bool is_open_to_all = ::read(file, &value, 1) == 1 && value == '1';
    ::close(file);
    if (is_open_to_all) GTEST_SKIP() << "vm.unprivileged_userfaultfd is 1: every process may track writes";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        drop_rights();
        const ObjectOptions tracked = small_blocks(Protocol::tracking);
        Object<std::uint64_t> first(words_of_block, tracked);
        Object<std::uint64_t> second(words_of_block, tracked);
        Stream stream(Device::host());
        run_on(stream, second, add_to_all(3));
        const bool is_right =
            second.memory().statistics().protocol == Protocol::protection && second[0] == 3 && first[0] == 0;
        ::_exit(is_right ? 0 : 1);
      },
      testing::ExitedWithCode(0),
      testing::Matcher<const std::string&>(
          SaidOnce("use \"protection\" instead: userfaultfd: Operation not permitted")));
}

/// Threads write words of their own while kernels add to all words; at the end each word is the sum.
void check_that_no_write_is_lost(Protocol protocol, std::size_t threads, std::size_t writes) {
  constexpr std::size_t words = 4096;  // of a thread: interleaved with those of others inside blocks
  ObjectOptions options = small_blocks(protocol, 60s);
  Object<std::uint64_t> object(words * threads, options);
  Stream stream(Device::host());
  std::atomic<std::size_t> running{threads};
  std::vector<std::vector<std::uint64_t>> written(threads, std::vector<std::uint64_t>(words));
  std::vector<std::thread> writers;
  // Kernels use the upper half of a word, threads the lower one: both add, and neither may undo the other's sum.
  for (std::size_t thread = 0; thread < threads; ++thread)
    writers.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      for (std::size_t write = 0; write < writes; ++write) {
        const std::size_t word = write % 8 == 0 ? random() % words : write % words;
        auto* const half = reinterpret_cast<volatile std::uint32_t*>(&object[word * threads + thread]);
        *half = *half + 1;
        ++written[thread][word];
      }
      --running;
    });
  std::uint64_t kernels = 0;
  do {
    run_on(stream, object, add_to_all(std::uint64_t{1} << 32));
    ++kernels;
    stream.synchronize();
    std::this_thread::sleep_for(100us);
  } while (running > 0);
  for (std::thread& writer : writers) writer.join();
  std::size_t wrong = 0;
  for (std::size_t thread = 0; thread < threads; ++thread)
    for (std::size_t word = 0; word < words; ++word) {
      const std::uint64_t seen = object[word * threads + thread];
      if ((seen & 0xffffffff) != written[thread][word] || seen >> 32 != kernels) ++wrong;
    }
  testing::Test::RecordProperty("kernels", std::to_string(kernels));
  EXPECT_EQ(wrong, 0u) << "of " << words * threads << " words, after " << kernels << " kernels";
}

/// BEELINE_TEST_WRITES is the number of writes of each thread.
std::size_t writes_of_each_thread() {
  const char* const text = std::getenv("BEELINE_TEST_WRITES");
#if defined(__SANITIZE_THREAD__)
  constexpr std::size_t writes = 20'000;
#else
  constexpr std::size_t writes = 100'000;
#endif
  return text == nullptr ? writes : std::stoul(text);
}

/// Threads ask the service for blocks, as signal handlers do for objects on GPUs: in a row, and after it has fallen
/// asleep. Each block that it made current is read without a fault.
TEST(ObjectFaults, TheServiceMakesBlocksCurrent) {
  constexpr std::size_t blocks = 64, threads = 4;
  Object<std::uint64_t> object(blocks * words_of_block, small_blocks());
  Stream stream(Device::host());
  run_on(stream, object, add_to_all(9));
  stream.synchronize();
  auto& asked = static_cast<detail::BlockObject&>(object.state());
  std::atomic<std::size_t> resolved{0};
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      for (std::size_t i = t; i < blocks; i += threads) {
        asked.pin();
        const detail::HostFault fault{i * block, false, ::gettid()};
        if (detail::FaultService::get().resolve(asked, fault) == detail::FaultResult::resolved) ++resolved;
        asked.unpin();
        if (i % 16 == t) std::this_thread::sleep_for(1ms);
      }
    });
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(resolved, blocks);
  const std::uint64_t faults = object.memory().statistics().faults;
  for (std::size_t i = 0; i < blocks; ++i) EXPECT_EQ(object[i * words_of_block], 9u);
  EXPECT_EQ(object.memory().statistics().faults, faults);
}

/// As handlers ask for objects on GPUs, before they ask the service.
TEST(ObjectFaults, HandlersOpenBlocksThatAreCurrent) {
  Object<char> object(4 * block, small_blocks());
  Stream stream(Device::host());
  run_on(stream, object, [](char* all, std::size_t) { all[0] = 1; });
  auto& asked = static_cast<detail::BlockObject&>(object.state());
  EXPECT_FALSE(asked.open_if_current({0, false, ::gettid()})) << "the kernel's end is not known";
  EXPECT_EQ(object[0], 1);
  EXPECT_FALSE(asked.open_if_current({block, false, ::gettid()})) << "the host lacks the block";
  EXPECT_TRUE(asked.open_if_current({0, true, ::gettid()}));
  const std::uint64_t faults = object.memory().statistics().faults;
  object[1] = 2;
  EXPECT_EQ(object.memory().statistics().faults, faults);
  run_on(stream, object, [](char* all, std::size_t) { ++all[1]; });
  EXPECT_EQ(object[1], 3);
}

TEST(ObjectFaults, ByProtectionLoseNoWrite) {
  check_that_no_write_is_lost(Protocol::protection, 16, writes_of_each_thread());
}
TEST(ObjectFaults, ByTrackingLoseNoWrite) {
  check_that_no_write_is_lost(Protocol::tracking, 16, writes_of_each_thread());
}

}  // namespace

}  // namespace beeline_test::object_faults
