// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>

namespace beeline::launcher {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t remembered_lines = 10;
constexpr std::size_t remembered_characters = 500;
constexpr std::size_t longest_line = std::size_t{16} << 20;  // a longer line is printed in pieces
constexpr auto line_time = 50ms;                             // for the rest of an unfinished line to arrive

/// Accepts objects and arrays only: a bare number or word is more likely text.
bool begins_json(std::string_view line) {
  const auto first = line.find_first_not_of(" \t");
  return first != std::string_view::npos && (line[first] == '{' || line[first] == '[');
}

bool is_json(std::string_view line) { return begins_json(line) && nlohmann::json::accept(line); }

}  // namespace

void History::add(std::string_view line) {
  lines_.emplace_back(line.substr(0, remembered_characters));
  if (line.size() > remembered_characters) lines_.back() += "...";
  if (lines_.size() > remembered_lines) lines_.pop_front();
}

void LineSplitter::feed(std::string_view bytes) {
  for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    partial_ += bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    end_line();
  }
  partial_ += bytes;
  if (partial_.size() >= longest_line) end_line();
  const bool is_held = partial_.size() == printed_ || (target_.passes_json && begins_json(partial_));
  if (is_held) due_ = Clock::time_point::max();
  if (!is_held && due_ == Clock::time_point::max()) due_ = Clock::now() + line_time;
}

void LineSplitter::finish() {
  if (!partial_.empty()) end_line();
}

void LineSplitter::print_beginning(Clock::time_point now) {
  if (now < due_) return;
  due_ = Clock::time_point::max();
  target_.console->print(target_.descriptor, target_.source, target_.prefix,
                         std::string_view(partial_).substr(printed_), false);
  printed_ = partial_.size();
}

bool LineSplitter::has_room() const {
  return target_.console->has_room(target_.descriptor) &&
         (!target_.passes_json || target_.console->has_room(STDOUT_FILENO));
}

void LineSplitter::end_line() {
  Console& console = *target_.console;
  due_ = Clock::time_point::max();
  if (!target_.greeting.empty() && printed_ == 0 && partial_ == target_.greeting) {
    target_.history->note_greeting();
    return partial_.clear();
  }
  target_.history->add(partial_);
  const std::string_view rest = std::string_view(partial_).substr(printed_);
  // Another line may have ended this one already.
  const bool is_over = printed_ > 0 && rest.empty() && !console.is_open(target_.descriptor, target_.source);
  if (target_.passes_json && printed_ == 0 && is_json(partial_))
    console.print(STDOUT_FILENO, target_.source, {}, partial_, true);
  else if (!is_over)
    console.print(target_.descriptor, target_.source, target_.prefix, rest, true);
  partial_.clear();
  printed_ = 0;
}

}  // namespace beeline::launcher
