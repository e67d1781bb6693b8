// SPDX-License-Identifier: Apache-2.0
#include "hpe/objects/block_object.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "hpe/objects/block_object_held.hpp"
#include "hpe/objects/fault_handler.hpp"
#include "hpe/objects/fault_service.hpp"

namespace beeline::hpe::detail {

namespace {

constexpr std::size_t most_bytes_ahead = std::size_t{8} << 20;
/// Of blocks that were used after the kernel before, and so most of them will be: more than of a guess.
constexpr std::size_t most_bytes_expected = std::size_t{64} << 20;

/// Limited to 30 years, so that it can be added to a clock.
std::int64_t deadline_of(const ObjectOptions& options) {
  const std::int64_t ns = options.deadline ? options.deadline->count() : Runtime::get().config().stream_deadline_ns;
  return std::min(ns, std::int64_t{1'000'000'000'000'000'000});
}

/// One line for the process.
void say_that_tracking_is_missing(const std::string& why) {
  static std::atomic<bool> is_said{false};
  if (!is_said.exchange(true))
    log(LogLevel::warning, "objects with the protocol \"tracking\" use \"protection\" instead: " + why);
}

}  // namespace

BlockObject::BlockObject(std::size_t bytes, const ObjectOptions& options, Device home)
    : bytes_(bytes), block_bytes_(block_bytes_for(bytes, options.block_bytes, options.protocol != Protocol::tracking)),
      home_(home), hint_(options.hint), deadline_ns_(deadline_of(options)),
      given_memory_(static_cast<std::byte*>(options.device_memory)),
      mappings_(options.protocol == Protocol::tracking
                    ? std::optional<ReservedMappings>()
                    : std::optional<ReservedMappings>(std::in_place, (bytes + block_bytes_ - 1) / block_bytes_)),
      blocks_((bytes + block_bytes_ - 1) / block_bytes_),
      ahead_(std::max<std::size_t>(1, most_bytes_ahead / block_bytes_),
             options.hint == Hint::streaming ? blocks_.size() : 1),
      repeated_(blocks_.size(), most_bytes_expected / block_bytes_) {
  const std::size_t whole = blocks_.size() * block_bytes_;
  if (home.is_gpu() && given_memory_ == nullptr) place_.emplace(home, whole);
  const bool is_whole = hint_ == Hint::streaming && options.protocol != Protocol::tracking;
  memory_.emplace(whole, place_ ? place_->address() : nullptr, Runtime::get().has_gpus(), is_whole);
  if (options.protocol == Protocol::tracking) {
    std::string why_not;
    view_ = make_tracked_view(*memory_, block_bytes_, why_not);
    if (view_ != nullptr)
      protocol_ = Protocol::tracking;
    else
      say_that_tracking_is_missing(why_not);
  }
  install_fault_handler();
  if (protocol_ == Protocol::tracking) FaultService::get();
  if (view_ == nullptr) {
    if (!mappings_) mappings_.emplace(blocks_.size());
    view_ = make_protected_view(*memory_);
  }
  if (hint_ == Hint::device_only) view_->close({0, whole}, false, written_);
  written_.clear();
  if (given_memory_ != nullptr) static_cast<void>(copy_on(home_));
  fork_handler_ = std::make_unique<beeline::detail::ForkHandler>([this] { begin_child(); });
  OwnerTable::of_process().add(
      {{.memory = Memory::object, .device = home_, .start = memory_->program(), .bytes = bytes_}, this});
}

unsigned BlockObject::copy_on(Device device) {
  for (unsigned copy = 0; copy < copies_.size(); ++copy)
    if (copies_[copy]->device() == device) return copy;
  if (copies_.size() >= BlockMap::most_copies)
    throw Error(Status::no_resource,
                fmt::format("{} is used by {} devices, the most that are possible", described(), copies_.size()));
  const std::size_t bytes = memory_->bytes();
  const bool is_home = device == home_;
  std::unique_ptr<DeviceCopy> made = is_home && given_memory_ != nullptr ? make_copy_over(device, given_memory_, bytes_)
                                     : is_home && place_                 ? make_copy_at(*place_, bytes)
                                                                         : make_copy_on(device, bytes);
  if (!made->fetches_in_handlers()) {
    FaultService::get();
    resolves_in_handlers_.store(false, std::memory_order_release);
  }
  copies_.push_back(std::move(made));
  return static_cast<unsigned>(copies_.size() - 1);
}

std::byte* BlockObject::address_on(Device device) {
  const Held held(*this);
  require_usable();
  return copies_[copy_on(device)]->address();
}

ObjectStatistics BlockObject::statistics() const {
  return {faults_.load(), fetched_bytes_.load(), sent_bytes_.load(), block_bytes_, protocol_};
}

void BlockObject::require_usable() const {
  if (is_closed_) throw Error(Status::invalid_argument, described() + " was released");
  if (is_inherited_)
    throw Error(Status::unavailable, described() + " is the parent process's, and serves no kernels after a fork");
  if (is_abandoned_)
    throw Error(Status::unavailable, described() + " is unusable since a fault inside its own transfer");
}

// --- Host ---

bool BlockObject::open_if_current(const HostFault& fault) noexcept {
  if (is_inherited_ || is_abandoned_ || hint_ == Hint::device_only) return false;
  try {
    const Held held(*this);
    const std::size_t block = fault.offset / block_bytes_;
    if (is_closed_ || !blocks_.is_on_host(block) || uses_.are_pending()) return false;
    make_current_ahead(fault);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

FaultResult BlockObject::resolve(const HostFault& fault) noexcept {
  if (is_inherited_ || is_abandoned_ || hint_ == Hint::device_only) return FaultResult::foreign;
  try {
    const Held held(*this);
    if (is_closed_) return FaultResult::foreign;
    if (view_->may_have_gone_on(fault.offset, fault.seen_ns)) return FaultResult::resolved;
    const std::size_t block = fault.offset / block_bytes_;
    const bool reads_shared = !fault.is_write && blocks_.is_on_host(block) && !kernels_write();
    if (!reads_shared && !uses_.are_over(blocks_)) {
      if (!uses_.are_held_by(fault.thread)) return FaultResult::waiting;
      refuse(fault.offset, own_device_access);
      return FaultResult::failed;
    }
    fetch_expected();
    make_current_ahead(fault);
    return FaultResult::resolved;
  } catch (const std::exception& error) {
    refuse(fault.offset, error.what());
    return FaultResult::failed;
  }
}

void BlockObject::refuse(std::size_t offset, const char* why) noexcept {
  try {
    log(LogLevel::error, fmt::format("an access to byte {} of {}: {}", offset, described(), why));
  } catch (const std::exception&) {
    // The text is lost; the access fails all the same.
  }
  view_->refuse(offset);
}

/// Opens blocks that are on the host.
///   awaited  as in HostView::open
void BlockObject::open(Blocks blocks, bool is_write, std::size_t awaited) {
  if (is_write) {
    view_->open(range_of(blocks), Permission::write, awaited);
    if (view_->tracks_writes()) return;
    for (std::size_t block = blocks.first; block < blocks.end; ++block) blocks_.set_host_alone(block);
    return;
  }
  for (std::size_t block = blocks.first; block < blocks.end;) {
    const bool is_alone = blocks_.is_on_host_alone(block);  // otherwise the first write must be a fault
    std::size_t next = block + 1;
    while (next < blocks.end && blocks_.is_on_host_alone(next) == is_alone) ++next;
    view_->open(range_of({block, next}), is_alone ? Permission::write : Permission::read, awaited);
    block = next;
  }
}

/// Makes the block of a fault current, and those that are taken ahead, if they are in the same state.
void BlockObject::make_current_ahead(const HostFault& fault) {
  faults_.fetch_add(1, std::memory_order_relaxed);
  const std::size_t block = fault.offset / block_bytes_;
  SteppedBlocks ahead = ahead_.blocks_from(block);
  if (ahead.count == 1) repeated_.note(block);  // others follow it, or are taken with it
  if (fault.is_write && ahead.step != 1 && blocks_.is_on_host(block)) ahead.count = 1;  // there is nothing to fetch
  const std::uint32_t holders = blocks_.holders(block);
  std::size_t count = 1;
  while (count < ahead.count && ahead[count] < blocks_.size() && blocks_.holders(ahead[count]) == holders) ++count;
  ahead.count = count;
  if (ahead.step != 1) return make_current(ahead, fault);
  const Blocks run{block, block + count};
  fetch(run);
  open(run, fault.is_write, fault.offset);
}

/// Blocks apart from each other: only the first one is opened for writes, as the program may write fewer than it reads.
void BlockObject::make_current(const SteppedBlocks& blocks, const HostFault& fault) {
  std::uint32_t used = 0;
  for (std::size_t i = 0; i < blocks.count; ++i) used |= start_fetches({blocks[i], blocks[i] + 1});
  finish_fetches(used);
  for (std::size_t i = 0; i < blocks.count; ++i) {
    blocks_.add_host(blocks[i]);
    open({blocks[i], blocks[i] + 1}, fault.is_write && i == 0, fault.offset);
  }
}

/// Fetches the blocks of repeated accesses together. They stay closed, so that faults show whether they are used.
void BlockObject::fetch_expected() {
  std::uint32_t used = 0;
  repeated_.for_expected([&](Blocks blocks) { used |= start_fetches(blocks); });
  finish_fetches(used);
  repeated_.for_expected([&](Blocks blocks) {
    for (std::size_t block = blocks.first; block < blocks.end; ++block) blocks_.add_host(block);
  });
}

void BlockObject::fetch(Blocks blocks) {
  finish_fetches(start_fetches(blocks));
  for (std::size_t block = blocks.first; block < blocks.end; ++block) blocks_.add_host(block);
}

/// Starts fetches of the blocks that the host lacks. Returns the copies that they use; until `finish_fetches` nothing
/// else may happen to the object.
std::uint32_t BlockObject::start_fetches(Blocks blocks) {
  std::uint32_t used = 0;
  for (std::size_t block = blocks.first; block < blocks.end;) {
    std::size_t next = block + 1;
    if (!blocks_.is_on_host(block)) {
      const unsigned copy = blocks_.first_device(block);
      while (next < blocks.end && !blocks_.is_on_host(next) && blocks_.first_device(next) == copy) ++next;
      const Range range = range_of({block, next});
      const std::size_t bytes = std::min(range.bytes, bytes_ - range.offset);
      copies_[copy]->start_fetch(memory_->shadow() + range.offset, range.offset, bytes);
      fetched_bytes_.fetch_add(bytes, std::memory_order_relaxed);
      used |= BlockMap::device(copy);
    }
    block = next;
  }
  return used;
}

void BlockObject::finish_fetches(std::uint32_t copies) {
  for (unsigned copy = 0; copy < copies_.size(); ++copy)
    if ((copies & BlockMap::device(copy)) != 0) copies_[copy]->finish_fetches();
}

void BlockObject::begin_access(Range range, Access access) {
  Held held(*this);
  require_usable();
  view_->forget_refusals();
  while (!uses_.are_over(blocks_)) {
    if (uses_.are_held_by(::gettid()))
      throw Error(Status::invalid_argument, fmt::format("a HostAccess to {}: {}", described(), own_device_access));
    held.wait("kernels that use it");
  }
  fetch(blocks_of(range));
  open(blocks_of(range), access == Access::write, memory_->bytes());
  accessors_.add(::gettid());
}

void BlockObject::end_access() noexcept {
  // The lock is free for longer than any deadline only if the object is unusable.
  if (!lock_.lock(now_ns() + deadline_ns_)) return;
  accessors_.remove(::gettid());
  lock_.unlock();
}

// --- Life ---

/// Why this thread would wait for itself; nullptr: no access is open, or other threads have some open.
const char* BlockObject::own_access() const {
  const pid_t thread = ::gettid();
  if (accessors_.are_all_of(thread)) return own_host_access;
  return uses_.are_held_by(thread) ? own_device_access : nullptr;
}

void BlockObject::close() {
  {
    Held held(*this);
    if (is_closed_) throw Error(Status::invalid_argument, described() + " was released already");
    while (!accessors_.empty() || !(is_abandoned_ || uses_.are_over(blocks_))) {
      if (const char* const own = own_access())
        throw Error(Status::invalid_argument, fmt::format("the release of {}: {}", described(), own));
      held.wait(!accessors_.empty() ? "accesses of the host (HostAccess), before its release,"
                                    : "kernels, before its release,");
    }
    is_closed_ = true;
    OwnerTable::of_process().remove(memory_->program());
  }
  await_lookups();
  const std::int64_t until_ns = now_ns() + deadline_ns_;
  while (pins_.load(std::memory_order_acquire) > 0) {
    if (now_ns() >= until_ns)
      throw Error(Status::deadline, "threads are still inside accesses to " + described() + ", which was released");
    nap(poll_period_ns);
  }
}

void BlockObject::abandon() noexcept {
  is_abandoned_ = true;
  lock_.unlock();
  unpin();
}

/// A child has neither the devices nor the threads that fetch. It keeps what the host had.
void BlockObject::begin_child() noexcept {
  is_inherited_ = true;
  lock_.reset();
  pins_.store(0);  // of the parent's threads
  forget_lookups();
  for (std::size_t block = 0; block < blocks_.size();) {
    std::size_t next = block + 1;
    while (next < blocks_.size() && blocks_.is_on_host(next) == blocks_.is_on_host(block)) ++next;
    const Range range = range_of({block, next});
    const bool is_done = blocks_.is_on_host(block) ? memory_->make_private(range.offset, range.bytes)
                                                   : memory_->make_inaccessible(range.offset, range.bytes);
    if (!is_done) std::abort();  // otherwise the child would store into the parent's memory
    block = next;
  }
}

}  // namespace beeline::hpe::detail
