// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Worlds for tests of the bootstraps: `body` runs once for each rank, and an exception on a rank fails the test.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "runtime/socket.hpp"

namespace beeline::tests {

inline constexpr std::int64_t generous_ns = 20'000'000'000;

using Body = std::function<void(Bootstrap&)>;

inline Config config_for(const RendezvousServer& server, const std::string& token, int rank, int size) {
  Config config;
  config.rank = rank;
  config.size = size;
  config.rendezvous = server.address();
  config.token = token;
  config.deadline_ns = generous_ns;
  return config;
}

/// Everything that the other side sends until it closes, for 20 s at most.
inline std::string read_to_end(int socket) {
  std::string text;
  std::array<char, 4096> some{};
  const detail::Deadline deadline(generous_ns);
  while (detail::wait_ready(socket, POLLIN, -1, deadline) == detail::Ready::yes) {
    const ssize_t got = ::recv(socket, some.data(), some.size(), 0);
    if (got <= 0) return text;
    text.append(some.data(), static_cast<std::size_t>(got));
  }
  ADD_FAILURE() << "the connection stays open";
  return text;
}

/// Runs `rank_main(rank)` on `size` threads; an exception fails the test.
inline void run_threads(int size, const std::function<void(int)>& rank_main) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&rank_main, rank] {
      try {
        rank_main(rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

/// Runs ranks that are threads and join in memory.
inline void run_in_memory(int size, const Body& body) {
  auto bootstraps = make_thread_bootstraps(size);
  run_threads(size, [&](int rank) {
    const std::unique_ptr<Bootstrap> mine = std::move(bootstraps[static_cast<std::size_t>(rank)]);
    body(*mine);
  });
}

/// Runs ranks that are threads and join over TCP, so that ThreadSanitizer sees all of them.
inline void run_over_tcp(int size, const Body& body) {
  const std::string token = make_token();
  const RendezvousServer server({size, token});
  run_threads(size, [&](int rank) { body(*join_world(config_for(server, token, rank, size))); });
}

/// Raises the limit on open files where needed: ranks that are threads share it.
inline bool allow_open_files(rlim_t count) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  if (limit.rlim_cur >= count) return true;
  limit.rlim_cur = count;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/// The error that `call` throws; fails the test if it throws none.
template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return {Status::ok, "no error"};
}

inline bool mentions(const Error& error, const std::string& text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

/// Checks that a wait ended by this deadline, and not before; but a rank that called a little later than another ends
/// with the other's deadline. On a busy machine a thread may get no core for some time.
class Stopwatch {
 public:
  void expect_deadline(std::int64_t deadline_ns) const {
    const std::int64_t elapsed = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start_).count();
    EXPECT_GE(elapsed, deadline_ns - deadline_ns / 10);
    EXPECT_LE(elapsed, deadline_ns + most_late_ns);
  }

 private:
  static constexpr std::int64_t most_late_ns = 3'000'000'000;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace beeline::tests
