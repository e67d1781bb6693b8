// SPDX-License-Identifier: Apache-2.0
#include "hpe/files/transfer.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <memory>
#include <thread>

#include "beeline/core/error.hpp"
#include "core/fork.hpp"
#include "hpe/files/gds.hpp"
#include "hpe/files/lane.hpp"

namespace beeline::hpe::detail {

namespace {

constexpr std::size_t kib = 1024, mib = kib * kib;
constexpr std::size_t least_usual_block = 256 * kib, usual_block = mib, long_block = 4 * mib;
/// Blocks that are read past the cache into buffers: the storage writes into the CPU's caches as long as all of the
/// buffers fit there.
constexpr std::size_t short_block = 512 * kib;
constexpr std::size_t largest_block = 1024 * mib;  // of a system call; Linux moves up to 2 GiB less a page
constexpr unsigned default_calls = 4;
/// Each call that the page cache answers copies its block on a core of its own.
unsigned default_cached_calls() {
  static constinit beeline::detail::ProcessValue<const unsigned> calls;
  return calls.get([] {
    return std::clamp(std::thread::hardware_concurrency(), default_calls, 16u);  // reads a file
  });
}
/// Operations of a stream are few: CUDA takes about a thousand before a call waits for the GPU.
constexpr std::size_t most_blocks_in_turn = 128, longest_block_in_turn = 64 * mib;
constexpr std::size_t most_bytes_in_turn = 64 * mib, least_slots_in_turn = 3;

/// Shorter blocks cost more calls, longer buffers fall out of the CPU's caches.
///   blocks  that the transfer has at least, unless they would be shorter than `least`
std::size_t default_block_bytes(std::size_t bytes, std::size_t most, std::size_t least = least_usual_block,
                                std::size_t blocks = 8) {
  return std::clamp(std::bit_floor(std::max<std::size_t>(bytes / blocks, 1)), least, most);
}

///   alignment  of the result; 0: none
std::size_t block_bytes_of(const FileOptions& options, std::size_t usual, std::size_t least, std::size_t alignment) {
  const std::size_t wanted = std::max(options.block_bytes == 0 ? usual : options.block_bytes, least);
  return alignment == 0 ? wanted : (wanted + alignment - 1) / alignment * alignment;
}

std::size_t whole_pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

void check_options(const FileOptions& options) {
  require(options.block_bytes <= largest_block, Status::invalid_argument,
          fmt::format("blocks of {} bytes: at most {}", options.block_bytes, largest_block));
  require(options.blocks_in_flight <= FileLane::most_calls, Status::invalid_argument,
          fmt::format("{} blocks in flight: at most {}", options.blocks_in_flight, FileLane::most_calls));
  if (options.deadline && options.deadline->count() <= 0)
    throw Error(Status::invalid_argument,
                fmt::format("a file's deadline of {} ns: expected more than 0", options.deadline->count()));
  require(static_cast<unsigned>(options.variant) <= static_cast<unsigned>(FileVariant::double_buffered) &&
              static_cast<unsigned>(options.access) <= static_cast<unsigned>(FileAccess::buffered),
          Status::invalid_argument, "an unknown variant or access of a file");
}

const FileOptions& checked_options(const FileOptions& options) {
  check_options(options);
  return options;
}

/// Linux holds up who writes while much of the memory waits for storage (vm.dirty_ratio): on a machine of 23 GB it did
/// so to repeated writes of 1 GiB.
std::size_t most_cached_bytes() {
  static constinit beeline::detail::ProcessValue<const std::size_t> bytes;
  return bytes.get([] {
    return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 64;
  });
}

/// Short writes that need not be durable stay in the page cache.
FileAccess access_of(const FileOptions& options, FileDirection direction, std::size_t bytes) {
  if (options.variant != FileVariant::automatic) return FileAccess::buffered;
  const bool may_stay = direction == FileDirection::writes && !options.durable && bytes <= most_cached_bytes();
  return options.access == FileAccess::automatic && may_stay ? FileAccess::buffered : options.access;
}

/// Whether all pages of a range are mapped: this call only looks at the mappings.
bool is_mapped(const std::byte* address, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(address) / page * page;
  const std::size_t length = reinterpret_cast<std::uintptr_t>(address) + bytes - start;
  return ::msync(reinterpret_cast<void*>(start), length, MS_ASYNC) == 0 || errno != ENOMEM;
}

std::unique_ptr<StagedCopies> copies_for(const FileMemory& memory, FileLane& lane, unsigned slots) {
  if (memory.is_of_host()) return make_host_copies();
  return make_stream_copies(lane.stream(memory.owner.device), slots);
}

}  // namespace

bool FileMemory::is_of_host() const {
  return owner.memory == Memory::pageable || owner.memory == Memory::pinned ||
         (owner.memory == Memory::device && !owner.device.is_gpu());
}

FileMemory checked_memory(std::byte* address, std::size_t bytes) {
  if (bytes == 0) return {};
  const auto refuse = [&](const std::string& why) {
    throw Error(Status::invalid_argument,
                fmt::format("{} bytes at {}: {}", bytes, static_cast<const void*>(address), why));
  };
  if (reinterpret_cast<std::uintptr_t>(address) > UINTPTR_MAX - bytes) refuse("no memory is so long");
  const FileMemory memory{address, owner_of(address)};
  const Owner& owner = memory.owner;
  if (owner.memory == Memory::device) owner.device.require_working();
  const std::size_t left =
      owner.start == nullptr ? bytes : owner.bytes - static_cast<std::size_t>(address - owner.start);
  if (bytes > left) refuse(fmt::format("its memory on {} ends after {}", owner.device.name(), left));
  if (owner.start == nullptr && memory.is_of_host() && !is_mapped(address, bytes))
    refuse("not all of them are memory of this process");
  return memory;
}

FileTransfer::FileTransfer(const std::filesystem::path& path, FileDirection direction, std::byte* memory,
                           std::size_t bytes, const FileOptions& options)
    : options_(checked_options(options)), memory_(checked_memory(memory, bytes)),
      file_(path, direction, {options.offset, bytes}, access_of(options, direction, bytes)) {
  TakenLane::free_surplus();
}

void FileTransfer::run() {
  if (file_.range().bytes > 0) {
    if (options_.variant == FileVariant::automatic)
      run_automatic();
    else
      run_by_hand();
  } else if (options_.progress) {
    options_.progress(0, 0);
  }
  file_.keep();
}

bool FileTransfer::is_read_by_cores(unsigned cached_calls) const {
  return file_.direction() == FileDirection::reads && file_.direct() < 0 && cached_calls > default_calls &&
         file_.range().bytes >= BlockMover::least_bytes_aside;
}

std::size_t FileTransfer::usual_block_bytes(unsigned cached_calls) const {
  const std::size_t bytes = file_.range().bytes;
  const bool in_place = memory_.is_of_host(), reads = file_.direction() == FileDirection::reads;
  if (file_.direct() >= 0) {
    // In new room a file system ends each block past the cache by a transaction that marks it as written.
    if (file_.is_in_new_room()) return default_block_bytes(bytes, long_block);
    return default_block_bytes(bytes, reads && !in_place ? short_block : usual_block);
  }
  // The kernel writes to a file's cache one block after the other, and each is handed to one of its threads.
  if (in_place) return default_block_bytes(bytes, long_block, reads ? least_usual_block : usual_block);
  // Each block wakes two threads: in blocks of 1 MiB, 16 cores read 1 GiB at half the rate of blocks of 4 MiB.
  if (is_read_by_cores(cached_calls)) return default_block_bytes(bytes, long_block, least_usual_block, 16);
  return default_block_bytes(bytes, usual_block);
}

Proceeding FileTransfer::automatic(std::size_t least_block_bytes) const {
  const unsigned in_flight = options_.blocks_in_flight;
  const std::size_t alignment = file_.direct() < 0 ? 0 : file_.offset_alignment();
  // The cache holds no blocks of new room.
  const bool in_new_room = file_.direct() >= 0 && file_.is_in_new_room();
  const unsigned calls = in_flight == 0 ? default_calls : in_flight;
  const unsigned cached_calls = in_flight == 0 && !in_new_room ? default_cached_calls() : calls;
  const BlockPlan plan(file_.range(),
                       block_bytes_of(options_, usual_block_bytes(cached_calls), least_block_bytes, alignment),
                       alignment);
  return {.plan = plan,
          .slots = std::max(calls, cached_calls) + BlockMover::copied_beside,
          .calls = calls,
          .cached_calls = cached_calls,
          .buffer_bytes = whole_pages(plan.largest_block()),
          .in_place = memory_.is_of_host()};
}

Proceeding FileTransfer::in_turn() const {
  Proceeding how = automatic(std::min(file_.range().bytes / most_blocks_in_turn, longest_block_in_turn));
  const std::size_t fitting = std::max(least_slots_in_turn, most_bytes_in_turn / how.buffer_bytes);
  how.slots = static_cast<unsigned>(std::min({std::size_t{how.slots}, fitting, how.plan.count()}));
  how.calls = std::min(how.calls, how.slots);
  how.cached_calls = std::min(how.cached_calls, how.slots);
  how.in_place = false;
  return how;
}

void FileTransfer::run_in_turn(const Proceeding& how, FileLane& lane, StagedCopies& copies,
                               const std::function<void()>& leave) {
  MoverParts parts = parts_of(how, lane, copies);
  parts.in_turn = true;
  move(parts, how.plan, leave);
  file_.keep();
}

MoverParts FileTransfer::parts_of(const Proceeding& how, FileLane& lane, StagedCopies& copies) {
  return {.file = file_,
          .io = is_read_by_cores(how.cached_calls) ? lane.io_by_threads() : lane.io(),
          .copies = copies,
          .memory = memory_.address,
          .buffers = lane.buffers(how.slots * how.buffer_bytes, !memory_.is_of_host()),
          .buffer_bytes = how.buffer_bytes,
          .slots = how.slots,
          .calls = how.calls,
          .cached_calls = how.cached_calls,
          .in_place = how.in_place};
}

FileTransfer::~FileTransfer() = default;

TakenLane& FileTransfer::taken_lane() {
  if (lane_ == nullptr)
    lane_ = options_.variant == FileVariant::automatic
                ? std::make_unique<TakenLane>()
                : std::make_unique<TakenLane>(std::make_unique<FileLane>(make_thread_io(1)));
  return *lane_;
}

void FileTransfer::run_automatic() {
  const Proceeding how = automatic(0);
  if (may_use_gds())
    if (std::unique_ptr<BlockIo> io = make_gds_io(file_, how.calls)) return run_by_gds(std::move(io), how.calls);
  TakenLane& lane = taken_lane();
  const std::unique_ptr<StagedCopies> copies = copies_for(memory_, lane.get(), how.slots);
  move(parts_of(how, lane.get(), *copies), how.plan, [&] { lane.leave(); });
}

bool FileTransfer::may_use_gds() const {
  return memory_.owner.memory == Memory::device && memory_.owner.device.is_gpu() && file_.direct() >= 0 &&
         no_gds_reason().empty();
}

void FileTransfer::run_by_gds(std::unique_ptr<BlockIo> io, unsigned calls) {
  const BlockPlan plan(file_.range(),
                       block_bytes_of(options_, default_block_bytes(file_.range().bytes, long_block), 0, 0), 0);
  const std::unique_ptr<StagedCopies> none = make_host_copies();
  const MoverParts parts{.file = file_,
                         .io = *io,
                         .copies = *none,
                         .memory = memory_.address,
                         .buffers = nullptr,
                         .buffer_bytes = 0,
                         .slots = calls,
                         .calls = calls,
                         .cached_calls = calls,
                         .in_place = true};
  move(parts, plan, [&] { static_cast<void>(io.release()); });
}

/// One thread reads or writes, and this one copies.
void FileTransfer::run_by_hand() {
  const bool is_double = options_.variant == FileVariant::double_buffered;
  const std::size_t bytes = file_.range().bytes;
  const std::size_t block =
      is_double ? std::min(block_bytes_of(options_, default_block_bytes(bytes, usual_block), 0, 0), bytes) : bytes;
  const std::size_t buffer_bytes = whole_pages(block);
  const unsigned slots = is_double ? 2 : 1;
  TakenLane& lane = taken_lane();
  const std::unique_ptr<StagedCopies> copies = copies_for(memory_, lane.get(), slots);
  const MoverParts parts{.file = file_,
                         .io = lane.get().io(),
                         .copies = *copies,
                         .memory = memory_.address,
                         .buffers = lane.get().buffers(slots * buffer_bytes, options_.variant != FileVariant::user),
                         .buffer_bytes = buffer_bytes,
                         .slots = slots,
                         .calls = 1,
                         .cached_calls = 1,
                         .in_place = false};
  move(parts, BlockPlan(file_.range(), block, 0), [&] { lane.leave(); });
}

void FileTransfer::move(const MoverParts& parts, const BlockPlan& plan, const std::function<void()>& leave) {
  BlockMover mover(parts, plan, options_);
  try {
    mover.run();
  } catch (...) {
    if (mover.is_stuck()) leave();
    throw;
  }
}

}  // namespace beeline::hpe::detail
