// SPDX-License-Identifier: Apache-2.0
#include "gaspi/request.hpp"

#include <algorithm>
#include <chrono>

namespace beeline::gaspi {

namespace {

bool is_of_segment(Action action) {
  return action == Action::allocate || action == Action::create || action == Action::announce ||
         action == Action::remove;
}

/// Whether two different requests exclude each other. Announcements of a segment to different ranks do not.
bool collide(const Request& a, const Request& b) {
  if (a.id != b.id || (a.action == Action::announce && b.action == Action::announce)) return false;
  if (is_of_segment(a.action)) return is_of_segment(b.action);
  return a.action == b.action && a.action == Action::commit;
}

}  // namespace

std::list<RequestBook::Entry>::iterator RequestBook::find(Number number) {
  return std::find_if(entries_.begin(), entries_.end(), [=](const Entry& entry) { return entry.number == number; });
}

std::pair<RequestBook::Number, bool> RequestBook::find_or_add(const Request& wanted) {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.request == wanted) {
      ++entry.calls;
      return {entry.number, false};
    }
    if (collide(entry.request, wanted))
      throw Failure(is_of_segment(wanted.action)
                        ? "another call for this segment has timed out and was not called again until its end"
                        : "another commit of this group has timed out and was not called again until its end");
  }
  if (!closed_.empty()) throw Failure(closed_);
  entries_.push_back({next_, wanted});
  return {next_++, true};
}

bool RequestBook::await(Number number, std::uint64_t limit_ns) {
  std::unique_lock lock(mutex_);
  Entry& entry = *find(number);
  if (!done_.wait_for(lock, std::chrono::nanoseconds(limit_ns), [&] { return entry.is_done; })) return false;
  entry.is_taken = true;
  if (!entry.text.empty()) throw Failure(entry.value, entry.text);
  return true;
}

bool RequestBook::contains(Action action, std::uint32_t id) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(),
                     [=](const Entry& entry) { return entry.request.action == action && entry.request.id == id; });
}

void RequestBook::release(Number number, bool gives_up) {
  const std::lock_guard lock(mutex_);
  const auto entry = find(number);
  if (--entry->calls != 0) return;
  if (entry->is_taken || gives_up) entries_.erase(entry);
  done_.notify_all();
}

std::vector<RequestBook::Numbered> RequestBook::pending() const {
  const std::lock_guard lock(mutex_);
  std::vector<Numbered> all;
  for (const Entry& entry : entries_)
    if (!entry.is_done) all.push_back({entry.number, entry.request});
  return all;
}

RequestBook::Number RequestBook::made() const {
  const std::lock_guard lock(mutex_);
  return next_ - 1;
}

std::vector<int> RequestBook::missing(Number number) const {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_)
    if (entry.number == number) return entry.missing;
  return {};
}

void RequestBook::note_missing(Number number, std::vector<int> ranks) {
  const std::lock_guard lock(mutex_);
  if (const auto entry = find(number); entry != entries_.end()) entry->missing = std::move(ranks);
}

void RequestBook::finish(Number number, std::int32_t value, const std::string& text) {
  const std::lock_guard lock(mutex_);
  const auto entry = find(number);
  if (entry == entries_.end()) return;
  if (entry->request.action == Action::dissolve) {  // no call waits for it
    entries_.erase(entry);
    return;
  }
  entry->is_done = true, entry->value = value, entry->text = text;
  done_.notify_all();
}

void RequestBook::close(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (!closed_.empty()) return;
  closed_ = reason;
  for (Entry& entry : entries_) {
    if (entry.is_done) continue;
    entry.is_done = true, entry.value = static_cast<std::int32_t>(Result::error), entry.text = reason;
  }
  done_.notify_all();
}

bool RequestBook::await_calls(std::uint64_t limit_ns) {
  std::unique_lock lock(mutex_);
  const auto has_call = [](const Entry& entry) {
    return entry.calls != 0 && entry.request.action != Action::dissolve;  // of which no call waits for the end
  };
  return done_.wait_for(lock, std::chrono::nanoseconds(limit_ns),
                        [&] { return std::none_of(entries_.begin(), entries_.end(), has_call); });
}

}  // namespace beeline::gaspi
