// SPDX-License-Identifier: Apache-2.0
#include "hpe/files/copies_in_turn.hpp"

#include "beeline/core/error.hpp"

namespace beeline::hpe::detail {

CopiesInTurn::CopiesInTurn(const FileTransfer& transfer, const Proceeding& how, std::byte* buffers, bool is_pinned,
                           const std::atomic<bool>& is_abandoned)
    : reads_(transfer.direction() == FileDirection::reads), memory_(transfer.memory()), buffers_(buffers),
      buffer_bytes_(how.buffer_bytes), is_abandoned_(is_abandoned) {
  for (unsigned i = 0; i < how.slots; ++i) slots_.push_back(std::make_unique<Slot>(is_pinned));
  for (std::size_t i = 0; i < how.plan.count(); ++i) {
    Slot& slot = *slots_[i % slots_.size()];
    copies_.push_back({how.plan.block(i), slot.may_begin.next_value(), slot.ended.next_value()});
  }
}

void CopiesInTurn::enqueue(StreamState& stream) {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const EnqueuedCopy& copy = copies_[i];
    const std::size_t index = i % slots_.size();
    std::byte *const memory = memory_ + copy.block.start, *const buffer = buffers_ + index * buffer_bytes_;
    stream.hold_until(slots_[index]->may_begin.address(), copy.begin_value);
    detail::copy(reads_ ? memory : buffer, reads_ ? buffer : memory, copy.block.bytes, stream);
    stream.enqueue_own([&](beeline::Stream& own) { own.write_signal(slots_[index]->ended.address(), copy.end_value); });
  }
}

void CopiesInTurn::require_all() const {
  require(!is_abandoned_, Status::aborted, "the stream did not take all copies of a transfer with a file");
}

bool CopiesInTurn::start(unsigned slot, std::byte*, const std::byte*, std::size_t) {
  require_all();
  Slot& begun = *slots_[slot];
  begun.may_begin.store(copy_of(slot, begun.started++).begin_value);
  return false;
}

bool CopiesInTurn::is_done(unsigned slot) {
  require_all();
  const Slot& asked = *slots_[slot];
  return asked.ended.has(copy_of(slot, asked.started - 1).end_value);
}

void CopiesInTurn::release() noexcept {
  for (std::size_t i = copies_.size() - slots_.size(); i < copies_.size(); ++i)  // the last of each slot
    slots_[i % slots_.size()]->may_begin.store(copies_[i].begin_value);
}

}  // namespace beeline::hpe::detail
