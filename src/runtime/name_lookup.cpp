// SPDX-License-Identifier: Apache-2.0
#include "runtime/name_lookup.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "core/thread.hpp"

namespace beeline::detail {

namespace {

Lookup ask_resolver(const std::string& host, const std::string& port, const addrinfo& hints) {
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  return {{found, &::freeaddrinfo}, error};
}

/// A question and its answer, shared by the thread that asks and the caller that waits.
struct Question {
  std::string host, port;
  addrinfo hints;
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Lookup> answer;  ///< guarded by the mutex
};

void answer(Question& question) {
  Lookup found = ask_resolver(question.host, question.port, question.hints);
  const std::lock_guard lock(question.mutex);
  question.answer = std::move(found);
  question.changed.notify_all();
}

}  // namespace

Lookup look_up(const std::string& host, const std::string& port, const addrinfo& hints, const Deadline& deadline) {
  addrinfo numeric = hints;
  numeric.ai_flags |= AI_NUMERICHOST;
  // An empty host has no name to look up.
  if (Lookup known = ask_resolver(host, port, numeric); known.error != EAI_NONAME || host.empty()) return known;
  const auto question = std::make_shared<Question>();
  question->host = host, question->port = port, question->hints = hints;
  {
    const AllSignalsBlocked blocked;
    start_thread_for("the lookup of a name", [question] { answer(*question); }).detach();
  }
  std::unique_lock lock(question->mutex);
  if (!wait_until(question->changed, lock, deadline, -1, [&] { return question->answer.has_value(); }))
    return {{nullptr, &::freeaddrinfo}, EAI_AGAIN};
  return std::move(*question->answer);
}

}  // namespace beeline::detail
