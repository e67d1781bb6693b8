// SPDX-License-Identifier: Apache-2.0
#include "hpe/files/block_mover.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "beeline/hpe/files.hpp"
#include "beeline/hpe/memory.hpp"
#include "hpe/files/block_io.hpp"
#include "hpe/files/open_file.hpp"
#include "hpe/files/staged_copies.hpp"
#include "tests/hpe/file_folder.hpp"
#include "tests/hpe/memory_kinds.hpp"

namespace beeline_test::file_tests {

namespace {

using namespace beeline::hpe;

constexpr std::size_t block_bytes = 4096;

/// A file, memory of its length, and how blocks go between them.
struct Transfer {
  Transfer(detail::FileDirection direction, std::size_t blocks, FileAccess access)
      : content(test_bytes(blocks * block_bytes, 12)), memory(content) {
    if (direction == detail::FileDirection::reads) make_file(folder / "file", content);
    file = std::make_unique<detail::OpenFile>(folder / "file", direction, detail::FileRange{0, content.size()}, access);
    if (direction == detail::FileDirection::reads) memory.assign(content.size(), {});
  }
  void move(detail::BlockIo& io, detail::StagedCopies& copies, unsigned slots, unsigned calls, bool in_place) {
    const PinnedMemory buffers(slots * block_bytes);
    const detail::MoverParts parts{.file = *file,
                                   .io = io,
                                   .copies = copies,
                                   .memory = memory.data(),
                                   .buffers = buffers.data(),
                                   .buffer_bytes = block_bytes,
                                   .slots = slots,
                                   .calls = calls,
                                   .cached_calls = calls,
                                   .in_place = in_place};
    const FileOptions options;
    const std::size_t alignment = file->direct() < 0 ? 0 : block_bytes;
    detail::BlockMover(parts, {file->range(), block_bytes, alignment}, options).run();
    file->keep();
    EXPECT_EQ(memory, content);
    EXPECT_EQ(content_of(folder / "file"), content);
  }

  FileFolder folder;
  std::vector<std::byte> content, memory;
  std::unique_ptr<detail::OpenFile> file;
};

/// Carries out a call when its result is awaited, one at a time.
class OneByOne final : public detail::BlockIo {
 public:
  void start(const detail::BlockCall& call) override { calls_.push_back(call); }
  void submit() override {}
  bool await(detail::BlockResult& result, std::int64_t longest_ns, unsigned wanted) override {
    if (longest_ns == 0 || calls_.empty()) return false;
    awaited.push_back(wanted);
    result = {calls_.front().tag, detail::carry_out_call(calls_.front())};
    calls_.pop_front();
    return true;
  }
  bool cancel(std::int64_t) override { return calls_.empty(); }

  std::vector<unsigned> awaited;  ///< results that the caller wanted, each time

 private:
  std::deque<detail::BlockCall> calls_;
};

/// What a reader of three blocks wants to await, with two calls in flight.
std::vector<unsigned> results_awaited(bool in_place) {
  OneByOne io;
  Transfer(detail::FileDirection::reads, 3, FileAccess::buffered).move(io, *detail::make_host_copies(), 2, 2, in_place);
  return io.awaited;
}

TEST(BlockMovers, LastCallsAreAwaitedTogether) { EXPECT_EQ(results_awaited(true), (std::vector<unsigned>{1, 2, 1})); }

TEST(BlockMovers, CallsBeforeCopiesAreAwaitedOneByOne) {
  EXPECT_EQ(results_awaited(false), (std::vector<unsigned>{1, 1, 1}));
}

/// As virtual disks: has the results of all submitted calls at the same time.
class AllAtOnce final : public detail::BlockIo {
 public:
  void start(const detail::BlockCall& call) override {
    started_.push_back(call);
    memory.insert(call.memory);
    ++calls;
  }
  void submit() override {
    submitted_.insert(submitted_.end(), started_.begin(), started_.end());
    started_.clear();
  }
  bool await(detail::BlockResult& result, std::int64_t longest_ns, unsigned) override {
    submit();
    if (results_.empty() && longest_ns > 0) {
      for (const detail::BlockCall& call : submitted_) results_.push_back({call.tag, detail::carry_out_call(call)});
      submitted_.clear();
    }
    if (results_.empty()) return false;
    result = results_.front();
    results_.pop_front();
    return true;
  }
  bool cancel(std::int64_t) override { return submitted_.empty(); }
  [[nodiscard]] bool has_work() const { return !submitted_.empty(); }

  std::set<std::byte*> memory;  ///< of all calls
  std::size_t calls = 0;

 private:
  std::vector<detail::BlockCall> started_, submitted_;
  std::deque<detail::BlockResult> results_;
};

/// Copies by the calling thread. Counts those that start while the storage rests, though not all calls were made.
class CopiesBesideCalls final : public detail::StagedCopies {
 public:
  CopiesBesideCalls(const AllAtOnce& io, std::size_t blocks) : io_(io), blocks_(blocks) {}
  bool start(unsigned slot, std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (io_.calls < blocks_ && !io_.has_work()) ++at_rest;
    return copies_->start(slot, to, from, bytes);
  }
  bool is_done(unsigned slot) override { return copies_->is_done(slot); }
  bool settle() noexcept override { return copies_->settle(); }

  std::size_t at_rest = 0;

 private:
  const AllAtOnce& io_;
  const std::size_t blocks_;
  const std::unique_ptr<detail::StagedCopies> copies_ = detail::make_host_copies();
};

constexpr unsigned blocks = 64, slots = 18, calls = 4;

TEST(BlockMovers, TheStorageReadsWhileBlocksAreCopied) {
  AllAtOnce io;
  CopiesBesideCalls copies(io, blocks);
  Transfer(detail::FileDirection::reads, blocks, FileAccess::buffered).move(io, copies, slots, calls, false);
  EXPECT_EQ(copies.at_rest, 0u);
}

TEST(BlockMovers, TheStorageWritesWhileBlocksAreCopied) {
  AllAtOnce io;
  CopiesBesideCalls copies(io, blocks);
  Transfer(detail::FileDirection::writes, blocks, FileAccess::buffered).move(io, copies, slots, calls, false);
  EXPECT_EQ(copies.at_rest, 1u);  // that before the first call
}

TEST(BlockMovers, BlocksPastTheCacheUseFewBuffers) {
  for (const auto direction : {detail::FileDirection::reads, detail::FileDirection::writes}) {
    Transfer transfer(direction, blocks, FileAccess::direct);
    if (transfer.file->direct() < 0) GTEST_SKIP() << "the folder's file system refuses O_DIRECT";
    AllAtOnce io;
    transfer.move(io, *detail::make_host_copies(), slots, calls, false);
    EXPECT_LE(io.memory.size(), calls + detail::BlockMover::copied_beside);
  }
}

}  // namespace

}  // namespace beeline_test::file_tests
